// Rules whose state refers to their neighbors, when workers leave in the middle of training.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <thread>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr int worker_count = 8, leaver = 3;

/// The optimum of worker i's own parabola; all have the same curvature. The leaver's is far away.
double target(int i) { return i == leaver ? -30.0 : 2.0 * i; }

struct Run {
  std::string rule;
  algorithm::Parameters parameters;
  std::int64_t staleness = 0;
  TopologyRule topology = stencil::ring();
  int rounds = 1200;
};

struct End {
  std::vector<double> x;
  double mass = 0;  ///< of push_sum: the sum over those that stayed
};

double mass_in(Worker& worker) {
  for (const TensorView& view : worker.state()) {
    if (view.name == "push_sum.mass") return *static_cast<const double*>(view.data);
  }
  return 0;
}

/// Gradient descent on the parabolas; one worker leaves after a quarter of the rounds.
End train(const Run& run) {
  End end;
  std::mutex mutex;
  local::run(worker_count, [&](const Group& group) {
    const int rank = group.rank();
    std::vector<double> x(5, 1.0);
    WorkerOptions options = testing::quick();
    options.initial = Initial::broadcast;
    options.algorithm = algorithm::by_name(run.rule, run.parameters);
    options.staleness = run.staleness;
    Worker worker(group, run.topology, {view_of("x", std::span(x))}, options);
    const int own_rounds = rank == leaver ? run.rounds / 4 : run.rounds;
    for (int t = 0; t < own_rounds; ++t) {
      worker.step(
          [&] {
            for (double& value : x) value += 0.02 * (target(rank) - value);
          },
          {.learning_rate = 0.02});
    }
    if (rank == leaver) return;
    const double mass = mass_in(worker);
    const std::lock_guard lock(mutex);
    end.x.push_back(x[4]);
    end.mass += mass;
  });
  return end;
}

double average_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double survivors_optimum() {
  std::vector<double> targets;
  for (int i = 0; i < worker_count; ++i) {
    if (i != leaver) targets.push_back(target(i));
  }
  return average_of(targets);
}

}  // namespace

TEST_CASE("workers that make every round find every message of it whole") {
  // Directed edges let workers run ahead: slots are written while others look for their round.
  local::run(5, [](const Group& group) {
    std::vector<double> x(5, group.rank());
    Worker worker(group, stencil::exponential(), {view_of("x", std::span(x))}, testing::quick());
    for (int t = 0; t < 20'000; ++t) worker.step([] {});
    const WorkerStats stats = worker.stats();
    expect(stats.rejoined == 0 && stats.skipped == 0,
           fmt::format("worker {} began anew {} times and left out {} messages", group.rank(),
                       stats.rejoined, stats.skipped));
  });
}

TEST_CASE("rules that correct for different data find the optimum of those that stay") {
  // Their fixed point is the optimum itself, on every worker.
  for (const Run& run :
       {Run{"d2", {}}, Run{"edm", {{"momentum", "0.5"}}}, Run{"gradient_tracking", {}}}) {
    for (const double x : train(run).x) {
      INFO(run.rule);
      CHECK(x == Approx(survivors_optimum()).margin(1e-6));
    }
  }
}

TEST_CASE("the mean of those that stay goes to their optimum, whatever the rule remembers") {
  // The mean of the weights makes gradient steps towards the mean of equally curved optima.
  const algorithm::Parameters dense{{"fraction", "1"}}, calm{{"momentum", "0.5"}};
  for (const Run& run : {Run{"awc", {}}, Run{"push_sum", {}}, Run{"choco", dense},
                         Run{"choco", {{"fraction", "0.4"}}}, Run{"decentlam", calm},
                         Run{"quasi_global_momentum", calm}, Run{"gut", {}},
                         Run{"averaged_momentum", {}}, Run{"averaged_momentum", {{"atc", "true"}}},
                         Run{"gut", {{"momentum", "0"}, {"mu", "0.9"}}}}) {
    INFO(run.rule);
    CHECK(average_of(train(run).x) == Approx(survivors_optimum()).margin(1e-6));
  }
}

TEST_CASE("a chain that a worker leaves is two chains, each at its own optimum") {
  std::vector<double> x = train({"relay_sum", {}, 0, stencil::grid1d(), 4000}).x;
  std::sort(x.begin(), x.end());
  REQUIRE(x.size() == worker_count - 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool is_below = i < leaver;
    CHECK(x[i] == Approx(is_below ? 2.0 : 11.0).margin(1e-6));  // means of 0, 2, 4 and of 8 to 14
  }
}

TEST_CASE("a tree that a worker leaves is parts, each at its own optimum") {
  // Worker 3 is between worker 7 and all others.
  std::vector<double> x = train({"relay_sum", {{"degree", "3"}}, 0, graph::tree(), 4000}).x;
  std::sort(x.begin(), x.end());
  REQUIRE(x.size() == worker_count - 1);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) CHECK(x[i] == Approx(6.0).margin(1e-6));
  CHECK(x.back() == Approx(target(7)).margin(1e-6));
}

TEST_CASE("stale workers that stay end near their own optimum") {
  for (const char* rule : {"push_sum", "gradient_tracking"}) {
    for (const std::int64_t staleness : {std::int64_t{1}, std::int64_t{3}}) {
      INFO(rule << " at staleness " << staleness);
      // The optimum of all is 5 lower. Stale workers do not keep the mean: 1.5 is what the
      // order of their rounds changes.
      const Run run{rule, {}, staleness, stencil::ring(), 5000};
      CHECK(average_of(train(run).x) == Approx(survivors_optimum()).margin(1.5));
    }
  }
}

TEST_CASE("stale push_sum stays among the optima while a neighbor takes nothing") {
  local::run(3, [](const Group& group) {
    std::vector<double> x(5, 1.0);
    WorkerOptions options = testing::quick();
    options.initial = Initial::broadcast;
    options.algorithm = algorithm::push_sum();
    options.staleness = unbounded_staleness;
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    const bool pauses = group.rank() == 0;
    for (int t = 0; t < (pauses ? 40 : 4000); ++t) {
      if (pauses && t == 20) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      worker.step([&] {
        for (double& value : x) value += 0.05 * (group.rank() - value);
      });
      expect(x[0] > -1 && x[0] < 3,
             fmt::format("worker {} stands at {} in round {}", group.rank(), x[0], t));
    }
  });
}

TEST_CASE("push_sum's mass is the number of those that stay, on directed edges, too") {
  for (const TopologyRule& topology : {stencil::ring(), stencil::exponential()}) {
    INFO(topology.name());
    CHECK(train({"push_sum", {}, 0, topology}).mass == Approx(worker_count - 1).epsilon(1e-12));
  }
}

TEST_CASE("push_sum stays among the optima when a worker leaves a directed ring") {
  // The survivors are a path: nobody pushes to its first worker any more.
  const End end = train({"push_sum", {}, 0, stencil::ring(true)});
  CHECK(end.mass == Approx(worker_count - 1).epsilon(1e-12));
  const auto [lowest, highest] = std::minmax_element(end.x.begin(), end.x.end());
  CHECK(*lowest > target(0) - 0.01);
  CHECK(*highest < target(worker_count - 1) + 0.01);
}
