#include "train/run/evaluator.hpp"

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("another model is tested in the replica's place, whose weights are put back") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    const data::Dataset& test = parts.plan.data.test;
    const auto before = values_of(parts.replica.own_model());
    const Evaluation own = parts.evaluator.own(test);
    // All outputs of a model of zeros are equal: its loss is log(classes).
    const AlignedBuffer zeros = model_of(parts.replica.layout().size_bytes(), 0);
    CHECK(parts.evaluator.of(zeros, test).loss_sum ==
          Approx(static_cast<double>(test.size()) * std::log(classes)));
    CHECK(values_of(parts.replica.own_model()) == before);
    CHECK(parts.evaluator.own(test).loss_sum == own.loss_sum);
  });
}

TEST_CASE("the workers' parts of the samples make up the whole") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    const data::Dataset& test = parts.plan.data.test;
    for (const int workers : {1, 3, 7}) {
      Evaluation sum;
      std::size_t samples = 0;
      for (int rank = 0; rank < workers; ++rank) {
        const data::Dataset part = train::part_of(test, rank, workers);
        const Evaluation found = parts.evaluator.own(part);
        samples += part.size();
        sum.correct += found.correct;
        sum.loss_sum += found.loss_sum;
      }
      CHECK(samples == test.size());
      CHECK(sum.correct == parts.evaluator.own(test).correct);
      CHECK(sum.loss_sum == Approx(parts.evaluator.own(test).loss_sum));
    }
  });
}

TEST_CASE("a damaged sample counts as wrong, and is no part of the loss") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    const data::Dataset damaged = with_damage(parts.plan.data.test);
    const train::Tested found =
        parts.evaluator.of(model_of(parts.replica.layout().size_bytes(), 0), damaged);
    CHECK(found.samples == test_samples - test_samples / 8);
    const train::Score score = train::score_of(found, damaged.size());
    // All outputs of a model of zeros are equal.
    CHECK(score.loss == Approx(std::log(classes)));
    CHECK(score.samples == test_samples);
    CHECK(score.accuracy == static_cast<double>(found.correct) / test_samples);
  });
}
