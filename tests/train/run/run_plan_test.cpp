#include "train/run/training_setup.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

train::RunPlan plan_with(const train::TrainerOptions& options) {
  const auto backend = small_backend();
  return train::plan_run(local::make_groups(1)[0], stencil::ring(), *backend, made_up_data(),
                         options);
}

}  // namespace

TEST_CASE("validation samples are drawn from all classes of the training part") {
  train::TrainerOptions options = trainer_options();
  options.validation = 0.101;
  const train::RunPlan plan = plan_with(options);
  CHECK(plan.data.validation.size() == 97);  // rounded up
  CHECK(plan.data.train.size() == train_samples - 97);
  const auto count = [](const data::Dataset& samples, int label) {
    return static_cast<double>(std::count(samples.labels().begin(), samples.labels().end(), label));
  };
  for (int label = 0; label < plan.data.train.classes(); ++label) {
    const double exact = 97 * count(made_up_data().train, label) / train_samples;
    CHECK(std::abs(count(plan.data.validation, label) - exact) <= 1);
  }
  options.seed = 7;
  const train::RunPlan other = plan_with(options);
  CHECK_FALSE(std::ranges::equal(other.data.validation.labels(), plan.data.validation.labels()));
}

TEST_CASE("skewed shards need one class label a sample") {
  train::TrainerOptions options = trainer_options();
  options.shards.dirichlet_alpha = 0.5;
  data::Splits data;
  data.train = {"prices", {1}, std::vector<float>(8), {std::vector<float>(8)}};
  data.test = data.train;
  const auto backend = small_backend();
  CHECK_THROWS_WITH(
      train::plan_run(local::make_groups(1)[0], stencil::ring(), *backend, data, options),
      ContainsSubstring("dirichlet:0.5 of data \"prices\"") && ContainsSubstring("even sharding"));
}

TEST_CASE("options that do not fit each other are refused by name") {
  const auto refused = [](const auto& change, const char* text) {
    train::TrainerOptions options = trainer_options();
    change(options);
    CHECK_THROWS_WITH(plan_with(options), ContainsSubstring(text));
  };
  refused([](auto& options) { options.learning_rate.base = 0; }, "learning rate 0");
  refused([](auto& options) { options.learning_rate.warmup_epochs = -1; }, "-1 epochs of warm-up");
  refused([](auto& options) { options.closing_rounds = -2; }, "-2 closing rounds");
  refused([](auto& options) { options.pace.slow[0] = 0.5; }, "0.5 times slower");
  refused([](auto& options) { options.validation = 1; }, "validation share of 1");
  refused([](auto& options) { options.patience = 3; }, "stopping early needs samples");
  const auto in_steps = [&](const auto& change, const char* text) {
    refused(
        [&](auto& options) {
          options.step_samples = 8;
          change(options);
        },
        text);
  };
  in_steps([](auto& options) { options.all_reduce = true; }, "8 samples with the all-reduce");
  in_steps([](auto& options) { options.arena = train::Arena::rotating; }, "take the fixed arena");
  in_steps([](auto& options) { options.worker.algorithm = algorithm::none(); }, "need equal steps");
  in_steps([](auto& options) { options.worker.algorithm = algorithm::decentlam(); },
           "algorithm decentlam, whose own momentum");
  train::TrainerOptions by_rate = trainer_options();
  by_rate.step_samples = 8;
  by_rate.worker.algorithm = algorithm::awc({.power = 1});
  CHECK_NOTHROW(plan_with(by_rate));
  refused(
      [](auto& options) {
        options.patience = 3;
        options.validation = 0.1;
        options.all_reduce = true;
      },
      "leave patience out");
}

TEST_CASE("a run of an all-reduce has a Worker that averages nothing from one start") {
  train::TrainerOptions options = trainer_options();
  options.worker.initial = Initial::as_is;
  options.all_reduce = true;
  const WorkerOptions worker = train::worker_options(options);
  CHECK(worker.algorithm.traits().name == "none");
  CHECK(worker.initial == Initial::broadcast);
  CHECK_THAT(worker.must_agree, ContainsSubstring("all-reduce true"));
}
