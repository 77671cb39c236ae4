#include "train/run/training_step.hpp"

#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>

#include <algorithm>
#include <tuple>

#include "support/catch.hpp"
#include "train/training.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// An all-reduce whose average is zero.
class Zeros final : public Reducer {
 public:
  void average(std::span<float> values) override { std::fill(values.begin(), values.end(), 0.0F); }
  void average(std::span<double> values) override { std::fill(values.begin(), values.end(), 0.0); }
};

double first_weight(Backend& backend) {
  return *static_cast<const double*>(backend.parameters().front().data);
}

double seconds_of(train::TrainingStep& step, const Batch& batch) {
  const auto began = Clock::now();
  step.train(batch);
  return Seconds(Clock::now() - began).count();
}

}  // namespace

TEST_CASE("the optimizer steps along the gradients that all workers have averaged") {
  const auto backend = small_backend();
  data::Loader loader(made_up_data().train, {}, 16);
  const double before = first_weight(*backend);
  train::TrainingStep reduced(*backend, {}, 0, std::make_unique<Zeros>(), 16);
  CHECK(reduced.train(loader.batch(0, 0)) > 0);
  CHECK(first_weight(*backend) == before);
  CHECK(reduced.reduce_s() > 0);
  train::TrainingStep alone(*backend, {}, 0, nullptr, 16);
  alone.train(loader.batch(0, 0));
  CHECK(first_weight(*backend) != before);
  CHECK(alone.reduce_s() == 0);
}

TEST_CASE("the figures of a step are the backend's, of the averaged gradients") {
  const auto backend = small_backend();
  data::Loader loader(made_up_data().train, {}, 16);
  const Batch batch = loader.batch(0, 0);
  const std::size_t correct = backend->evaluate(batch).correct;
  train::TrainingStep reduced(*backend, {}, 0, std::make_unique<Zeros>(), 16);
  CHECK_FALSE(reduced.correct());
  CHECK_FALSE(backend->gradient_norm());
  reduced.train(batch);
  CHECK(reduced.correct() == correct);
  CHECK(backend->gradient_norm() == 0);
  train::TrainingStep alone(*backend, {}, 0, nullptr, 16);
  alone.train(batch);
  CHECK(backend->gradient_norm().value() > 0);
}

TEST_CASE("a step takes at least the time that its pace demands, that of the slow worker more") {
  const auto backend = small_backend();
  data::Loader loader(made_up_data().train, {}, 16);
  const train::Pace pace{.step_s = 0.02, .slow = {{1, 3.0}}};
  train::TrainingStep usual(*backend, pace, 0, nullptr, 16), slow(*backend, pace, 1, nullptr, 16);
  CHECK(seconds_of(usual, loader.batch(0, 0)) >= 0.02);
  CHECK(seconds_of(slow, loader.batch(0, 0)) >= 0.06);
}

// 16 samples in steps of 6: the last step has 4, and 4/6 of the rate.
TEST_CASE("a divided batch makes a step for each part, in proportion to its samples") {
  const auto divided = small_backend(), by_hand = small_backend();
  data::Loader loader(made_up_data().train, {}, 16);
  const Batch batch = loader.batch(0, 0);
  train::TrainingStep step(*divided, {}, 0, nullptr, 16);
  step.divide(6);
  step.set_share(3);  // does not count
  step.set_learning_rate(0.3);
  const double loss = step.train(batch);
  double losses = 0;
  std::size_t correct = 0;
  for (const auto& [first, count, rate] :
       {std::tuple{0, 6, 0.3}, std::tuple{6, 6, 0.3}, std::tuple{12, 4, 0.2}}) {
    by_hand->set_learning_rate(rate);
    losses += count * by_hand->train(part_of(batch, std::size_t(first), std::size_t(count)));
    correct += by_hand->correct_in_step().value();
  }
  CHECK(loss == Approx(losses / 16));
  CHECK(step.correct() == correct);
  const auto found = divided->parameters(), expected = by_hand->parameters();
  for (std::size_t t = 0; t < found.size(); ++t) {
    const auto* a = static_cast<const double*>(found[t].data);
    const auto* b = static_cast<const double*>(expected[t].data);
    for (std::size_t e = 0; e < found[t].element_count(); ++e) REQUIRE(a[e] == Approx(b[e]));
  }
}
