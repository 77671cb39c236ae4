// Workers that leave before the end, as threads. All suspect nobody before a minute has
// passed: no test ends in time if somebody waits for the one that has left.
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>
#include <limits>
#include <mutex>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr int early_leaver = 1;
constexpr int leaves_in = 50, leaving_rounds = 800;
constexpr double leaving_rate = 0.02;

struct LeavingRun {
  std::string rule;
  std::int64_t staleness = 0;
  int workers = 4;
  std::string topology = "ring";
};

TopologyRule topology_of(const LeavingRun& run) {
  return run.topology == "ring" ? stencil::ring() : stencil::complete();
}

/// That of the leaver is far away.
double target_of(int worker) { return worker == early_leaver ? 30.0 : 2.0 * worker; }

double optimum_without_leaver(int workers) {
  double sum = 0;
  for (int worker = 0; worker < workers; ++worker)
    sum += worker == early_leaver ? 0 : target_of(worker);
  return sum / (workers - 1);
}

WorkerOptions options_of(const LeavingRun& run) {
  WorkerOptions options = testing::quick();
  options.algorithm =
      algorithm::by_name(run.rule, run.rule == "choco" ? algorithm::Parameters{{"fraction", "1"}}
                                                       : algorithm::Parameters{});
  options.staleness = run.staleness;
  options.suspect_after = Seconds(60);
  options.deadline = Seconds(100);
  return options;
}

void check_leaver(Worker& worker) {
  worker.leave();
  expect(worker.round() == std::numeric_limits<std::int64_t>::max(), "rounds are left");
  bool stepped = false;
  worker.step([&] { stepped = true; }, {.learning_rate = leaving_rate});
  expect(stepped, "the user's step was not run");
  worker.leave();
  worker.await_finish();
}

/// Gradient descent. Returns the mean of those that stay; checks what they know in the end.
double train_without(const LeavingRun& run) {
  double sum = 0, longest_s = 0;
  std::vector<double> means;
  std::mutex mutex;
  local::run(run.workers, [&](const Group& group) {
    std::vector<double> x(5, 1.0);
    Worker worker(group, topology_of(run), {view_of("x", std::span(x))}, options_of(run));
    double own_s = 0;
    while (worker.round() < (group.rank() == early_leaver ? leaves_in : leaving_rounds)) {
      const auto began = Clock::now();
      worker.step(
          [&] {
            for (double& value : x) value += leaving_rate * (target_of(group.rank()) - value);
          },
          {.learning_rate = leaving_rate});
      own_s = std::max(own_s, Seconds(Clock::now() - began).count());
    }
    if (group.rank() == early_leaver) return check_leaver(worker);
    worker.await_finish();
    const Departures departed = worker.departed();
    expect(departed.left == std::vector<int>{early_leaver}, "it is not known who has left");
    expect(departed.lost.empty(), "somebody counts as lost");
    std::vector<double> mean(5);
    worker.mean_model({view_of("x", std::span(mean))});
    const std::lock_guard lock(mutex);
    sum += x[4];
    means.push_back(mean[4]);
    longest_s = std::max(longest_s, own_s);
  });
  const double mean = sum / (run.workers - 1);
  for (const double one : means) CHECK(one == Approx(mean).margin(1e-9));
  CHECK(longest_s < 40);
  return mean;
}

}  // namespace

TEST_CASE("when a worker leaves, the others go on at once, to their own optimum") {
  for (const LeavingRun& run :
       {LeavingRun{"awc"}, LeavingRun{"atc"}, LeavingRun{"push_sum"}, LeavingRun{"d2"},
        LeavingRun{"gradient_tracking"}, LeavingRun{"choco"}, LeavingRun{"awc", 0, 2},
        LeavingRun{"awc", 0, 3, "complete"}, LeavingRun{"push_sum", 0, 5}, LeavingRun{"awc", 2, 5},
        LeavingRun{"atc", 2, 3}}) {
    INFO(run.rule << " at staleness " << run.staleness << ", " << run.workers << " workers");
    // With that worker, it would be 6 and more away.
    CHECK(train_without(run) ==
          Approx(optimum_without_leaver(run.workers)).margin(run.staleness == 0 ? 1e-3 : 1.0));
  }
}

TEST_CASE("a worker leaves before its first round, and one that trains alone is left") {
  local::run(2, [](const Group& group) {
    std::vector<double> x(5, 1.0 + group.rank());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options_of({"awc"}));
    if (group.rank() == 1) return worker.leave();
    while (worker.round() < 20) worker.step([] {});
    worker.await_finish();
    expect(worker.departed().left == std::vector<int>{1}, "worker 1 has not left");
    worker.mean_model({view_of("x", std::span(x))});
    expect(std::abs(x[0] - 1.5) < 1e-12, "worker 1's first publication was read once: (1 + 2) / 2");
  });
}

TEST_CASE("nobody leaves where all workers average together") {
  local::run(2, [](const Group& group) {
    std::vector<double> x(5);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options_of({"gossip_pga"}));
    try {
      worker.leave();
      expect(false, "a worker has left");
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::argument, error.what());
    }
    while (worker.round() < 20) worker.step([] {});
    worker.await_finish();
  });
}
