// Workers that make unequal numbers of local steps between two exchanges.
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/training.hpp"

using namespace fast;
using testing::Trained;
using testing::trainer_options;

namespace {

std::vector<Trained> train_in_steps(int workers, const train::TrainerOptions& options) {
  std::vector<Trained> all(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    const bool is_complete =
        options.worker.algorithm.traits().topology.mixing == algorithm::MixingRequirement::complete;
    all[static_cast<std::size_t>(group.rank())] =
        testing::train_small(group, is_complete ? stencil::complete() : stencil::ring(), options);
  });
  return all;
}

/// Worker i makes steps[i] steps of SGD in a round on curvature_i/2 (x - goal_i)^2.
struct UnevenRun {
  algorithm::Rule rule;
  TopologyRule topology;
  double rate;
  int leaver = -1;  ///< leaves half way

  static constexpr int steps[] = {5, 1, 1, 2, 3};
  static double goal(int worker) { return worker * worker - 3.0; }
  static double curvature(int worker) { return 0.5 + 0.25 * worker; }

  /// Where Σ_i weight_i curvature_i (x - goal_i) is 0, over the workers that are there.
  template <class Weight>
  double optimum(const Weight& weight) const {
    double pull = 0, mass = 0;
    for (int w = 0; w < 5; ++w) {
      if (w == leaver) continue;
      pull += weight(w) * curvature(w) * goal(w);
      mass += weight(w) * curvature(w);
    }
    return pull / mass;
  }

  /// The mean of the workers that are there, at the end.
  double end() const {
    std::vector<double> ends(5);
    local::run(5, [&](const Group& group) {
      const int me = group.rank();
      double& x = ends[static_cast<std::size_t>(me)];
      WorkerOptions options;
      options.algorithm = rule;
      options.deadline = Seconds(30);
      Worker worker(group, topology, {view_of("x", std::span(&x, 1))}, options);
      constexpr int rounds = 3000;
      for (int t = 0; t < rounds; ++t) {
        if (me == leaver && t == rounds / 2 + 1) return worker.leave();
        worker.step([&] {
          for (int k = 0; k < steps[me]; ++k) x -= rate * curvature(me) * (x - goal(me));
        });
      }
      worker.await_finish();
    });
    double sum = 0;
    for (int w = 0; w < 5; ++w) sum += w == leaver ? 0 : ends[static_cast<std::size_t>(w)];
    return sum / (leaver < 0 ? 5 : 4);
  }
};

}  // namespace

// To first order in the rate: the distance to the optimum falls with it.
TEST_CASE("with unequal numbers of steps, outer rules go to the optimum of all samples") {
  const std::vector<std::pair<algorithm::Rule, TopologyRule>> rules = {
      {algorithm::gasloc({.period = 2, .acceleration = 0.2}), stencil::ring()},
      {algorithm::gasloc({.period = 3, .acceleration = 0.2, .delay = 1}), stencil::complete()},
      {algorithm::diloco({.period = 2, .momentum = 0.5}), stencil::complete()},
      {algorithm::local({.period = 2}), stencil::complete()},
  };
  for (const auto& [rule, topology] : rules) {
    for (const int leaver : {-1, 3}) {
      INFO(rule.traits().name << " " << rule.traits().parameters << " " << leaver);
      UnevenRun run{rule, topology, 0.002, leaver};
      const double by_samples = run.optimum([](int w) { return UnevenRun::steps[w]; });
      const double alike = run.optimum([](int) { return 1; });
      const double by_squares =
          run.optimum([](int w) { return UnevenRun::steps[w] * UnevenRun::steps[w]; });
      REQUIRE(std::abs(by_samples - alike) > 0.4);
      REQUIRE(std::abs(by_samples - by_squares) > 0.4);
      CHECK(std::abs(run.end() - by_samples) < 0.15);
    }
  }
}

// One worker: an epoch of batches of 48 in steps of 16 has the steps of batches of 16.
TEST_CASE("steps of a part of the batch are those of smaller batches") {
  train::TrainerOptions options = trainer_options();
  options.worker.algorithm = algorithm::atc();
  const auto small = train_in_steps(1, options);
  options.batch_size = 48;
  options.step_samples = 16;
  const auto divided = train_in_steps(1, options);
  CHECK(divided[0].summary.rounds * 3 == small[0].summary.rounds);
  CHECK(divided[0].mean_model == small[0].mean_model);
}

TEST_CASE("workers with batches by speed and local steps learn, with outer rules, too") {
  const algorithm::Rule rules[] = {algorithm::gasloc({.period = 4, .delay = 2}),
                                   algorithm::diloco({.period = 2, .momentum = 0.5}),
                                   algorithm::sparta({.fraction = 0.2}), algorithm::awc()};
  for (const algorithm::Rule& rule : rules) {
    for (const char* balance : {"4,2,1", "measured"}) {
      CAPTURE(rule.traits().name, balance);
      train::TrainerOptions options = trainer_options();
      options.epochs = 6;
      options.worker.algorithm = rule;
      options.balance = train::balance_from(balance);
      options.step_samples = 6;
      const auto all = train_in_steps(3, options);
      CHECK(all[0].summary.test_accuracy_mean_model > 0.9);
      CHECK(all[0].mean_model == all[2].mean_model);
    }
  }
}

TEST_CASE("a run of unequal local steps that is stopped and resumed ends with the same bits") {
  const testing::TemporaryDirectory directory;
  train::TrainerOptions options = trainer_options();
  options.worker.algorithm = algorithm::gasloc({.period = 4, .acceleration = 0.2, .delay = 1});
  options.balance = train::balance_from("1,4,2");
  options.step_samples = 5;
  const auto whole = train_in_steps(3, options);
  train::TrainerOptions cut = options;
  cut.checkpoints.directory = directory.path();
  cut.checkpoints.every_rounds = 25;
  cut.worker.on_round = [](std::int64_t round) {
    if (round == 37) throw std::runtime_error("the power is cut");
  };
  CHECK_THROWS(train_in_steps(3, cut));
  options.checkpoints.resume = directory.path();
  const auto resumed = train_in_steps(3, options);
  for (std::size_t w = 0; w < 3; ++w) CHECK(resumed[w].mean_model == whole[w].mean_model);
}
