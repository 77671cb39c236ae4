#include "train/run/evaluation.hpp"

#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/train/trainer.hpp>

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

TEST_CASE("a test computes no more large samples at once than the training") {
  CHECK(train::test_batch(16, 3 * 224 * 224) == 16);
  CHECK(train::test_batch(16, 3 * 32 * 32) == 21);
  CHECK(train::test_batch(1, 3 * 224 * 224) == 1);
  CHECK(train::test_batch(64, 8) == 500);
  CHECK(train::test_batch(1000, 8) == 1000);
  CHECK(train::test_batch(4, 0) == 500);
}

TEST_CASE("without samples there is nothing to report") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    const train::Tested found = parts.evaluator.own(parts.plan.data.test.slice(0, 0));
    CHECK(found.samples == 0);
    CHECK(found.measures.empty());
    CHECK(train::score_of(found, 0).results().empty());
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

TEST_CASE("samples of which none can be read count as wrong") {
  with_one_worker(trainer_options(), [](RunParts& parts) {
    const data::Dataset damaged = with_damage(parts.plan.data.test).slice(0, 1);
    const train::Tested found = parts.evaluator.own(damaged);
    CHECK(found.samples == 0);
    CHECK(found.correct == 0);
    CHECK(train::score_of(found, damaged.size()).accuracy == 0);
  });
}

namespace {

/// One number that learns the mean of all targets.
struct MeanOfTargets final : Backend {
  float value = 0;
  double rate = 0;
  std::vector<Measure> measures;  ///< that it claims
  std::size_t largest = 0;        ///< batch in a test

  std::string name() const override { return "mean of targets"; }
  std::vector<TensorView> parameters() override { return {view_of("value", std::span(&value, 1))}; }
  double train(const Batch& batch, const GradientHook&) override {
    double apart = 0;
    for (const float target : batch.targets) apart += double{value} - double{target};
    value -= static_cast<float>(rate * 2 * apart / static_cast<double>(batch.count()));
    return evaluate(batch).loss_sum / static_cast<double>(batch.count());
  }
  Evaluation evaluate(const Batch& batch) override {
    Evaluation found;
    largest = std::max(largest, batch.count());
    for (const float target : batch.targets) {
      found.loss_sum += (double{value} - double{target}) * (double{value} - double{target});
    }
    found.measures = measures;
    return found;
  }
  void set_learning_rate(double learning_rate) override { rate = learning_rate; }
};

/// Targets -1 and 1 in turn: the best number is 0, and the best mean loss 1.
train::Summary train_to_mean(MeanOfTargets& backend) {
  std::vector<float> inputs(80), targets(80, 1);
  for (std::size_t i = 0; i < targets.size(); i += 2) targets[i] = -1;
  const data::Dataset samples("signs", {1}, inputs, data::Targets{targets, {}});
  const data::Splits data{samples.slice(0, 64), samples.slice(64, 16), {}};
  train::TrainerOptions options;
  options.progress = false;
  options.batch_size = 64;
  options.epochs = 3;
  train::Summary summary;
  local::run(1, [&](const Group& group) {
    summary = train::train(group, stencil::ring(), backend, data, options);
  });
  return summary;
}

}  // namespace

TEST_CASE("a task without measures is measured by its mean loss") {
  MeanOfTargets backend;
  const train::Summary summary = train_to_mean(backend);
  REQUIRE(summary.measures.size() == 1);
  CHECK(summary.measures[0].name == "mean_loss");
  CHECK(summary.measures[0].mean_model == Approx(1));
  CHECK(summary.test_loss_mean_model == Approx(1));
}

TEST_CASE("large samples are tested in batches of the training's size") {
  constexpr std::size_t values = 20000;
  const std::vector<float> inputs(24 * values), targets(24, 1);
  const data::Dataset samples("wide", {values}, inputs, data::Targets{targets, {}});
  train::TrainerOptions options;
  options.progress = false;
  options.batch_size = 4;
  options.epochs = 1;
  MeanOfTargets backend;
  local::run(1, [&](const Group& group) {
    train::train(group, stencil::ring(), backend, {samples.slice(0, 8), samples.slice(8, 16), {}},
                 options);
  });
  CHECK(backend.largest == 4);
}

TEST_CASE("measures of a backend with a name that metrics cannot have end the run") {
  MeanOfTargets backend;
  backend.measures = {{"loss", Measure::Form::mean, {1, 1}}};
  CHECK_THROWS_WITH(train_to_mean(backend), ContainsSubstring("measures: the name \"loss\""));
}
