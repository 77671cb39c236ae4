// Workers with spares, as threads. A death is what the launcher reports of it.
#include <fast/exchange/local.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"
#include "worker/reported.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr int lost_worker = 1;

double target(int seat) { return seat == lost_worker ? 30.0 : 2.0 * seat; }

struct Run {
  std::string rule;
  std::int64_t staleness = 0;
  int workers = 4;
  int spares = 1;
  bool first_fails = false;  ///< the first spare throws some rounds after it has taken the seat
};

struct End {
  double sum = 0;
  int seats = 0, without = 0;
};

/// Of a spare.
void fail_later(Worker& worker) {
  const auto step = [](int round) {
    if (round == 20) throw std::runtime_error("the disk is full");
  };
  try {
    for (int round = 0; worker.round() < 800; ++round)
      worker.step([&] { step(round); }, {.learning_rate = 0.02});
    expect(false, "the spare was not needed");
  } catch (const std::runtime_error& error) {
    expect(error.what() == std::string("the disk is full"), error.what());
  }
}

/// Gradient descent on the parabolas of all seats. In round 50, worker 1 is reported dead.
End train(const Run& run) {
  constexpr int rounds = 800;
  End end;
  std::mutex mutex;
  std::atomic<bool> reports{false};
  local::run(run.workers + run.spares, [&](const Group& threads) {
    const Group group = with_spares(testing::reported(threads, lost_worker, reports), run.spares);
    std::vector<double> x(5, 1.0);
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name(run.rule);
    options.staleness = run.staleness;
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    const bool is_lost = threads.rank() == lost_worker;
    if (run.first_fails && threads.rank() == run.workers) return fail_later(worker);
    while (worker.round() < (is_lost ? 50 : rounds)) {
      worker.step(
          [&] {
            // The others do not wait for the seat that a spare has left.
            if (run.first_fails) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            for (double& value : x) value += 0.02 * (target(worker.rank()) - value);
          },
          {.learning_rate = 0.02});
    }
    if (is_lost) {
      reports = true;
      while (group.has_seat()) std::this_thread::yield();  // the neighbors wait meanwhile
      worker.step([] {}, {.learning_rate = 0.02});
    }
    worker.await_finish();
    const std::lock_guard lock(mutex);
    group.has_seat() ? ++end.seats : ++end.without;
    if (group.has_seat()) end.sum += x[4];
  });
  return end;
}

double optimum(int workers) {
  double sum = 0;
  for (int seat = 0; seat < workers; ++seat) sum += target(seat);
  return sum / workers;
}

}  // namespace

TEST_CASE("a spare that is not needed returns without a seat when training has ended") {
  local::run(5, [](const Group& threads) {
    const Group group = with_spares(threads, 2);
    const bool is_spare = threads.rank() >= 3;
    expect(group.size() == 3 && group.spares() == 2, "spares count as workers");
    expect(group.has_seat() == !is_spare, "another rank has a seat");
    std::vector<double> x(5, threads.rank());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, testing::quick());
    expect(group.has_seat() == !is_spare, "another worker has a seat");
    int rounds = 0;
    for (; worker.round() < 40; ++rounds) worker.step([] {});
    worker.await_finish();
    expect(rounds == (is_spare ? 0 : 40), fmt::format("{} rounds", rounds));
    if (is_spare) return;
    worker.mean_model({view_of("x", std::span(x))});
    expect(std::abs(x[0] - 1) < 1e-9, "the mean is not that of the workers");
    expect(worker.departed().lost.empty() && group.replaced().empty(), "somebody was lost");
    group.barrier(Deadline(Seconds(30)), "the workers alone");
  });
}

TEST_CASE("with a spare on the lost worker's seat, the mean goes to the optimum of all") {
  for (const Run& run : {Run{"awc"}, Run{"atc"}, Run{"push_sum"}, Run{"d2"},
                         Run{"gradient_tracking"}, Run{"awc", 2}, Run{"atc", 2, 5}}) {
    INFO(run.rule << " at staleness " << run.staleness);
    const End end = train(run);
    CHECK(end.seats == run.workers);
    CHECK(end.without == 1);
    // Without the seat, it would be 6 and more away.
    CHECK(end.sum / run.workers ==
          Approx(optimum(run.workers)).margin(run.staleness == 0 ? 1e-3 : 1.0));
  }
}

TEST_CASE("a spare that fails leaves its seat to the next spare, and training goes on") {
  for (const Run& run : {Run{"awc", 0, 4, 2, true}, Run{"push_sum", 0, 3, 2, true}}) {
    INFO(run.rule);
    const End end = train(run);
    CHECK(end.seats == run.workers);
    CHECK(end.without == 1);  // the worker that was lost
    CHECK(end.sum / run.workers == Approx(optimum(run.workers)).margin(1e-3));
  }
}

TEST_CASE("as many spares as ranks are refused, and rules that average over all workers") {
  local::run(2, [](const Group& threads) {
    bool refused = false;
    try {
      with_spares(threads, 2);
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::argument;
    }
    expect(refused, "2 spares of 2 ranks");
    const Group group = with_spares(threads, 1);
    std::vector<double> x(5);
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name("gossip_pga");
    try {
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      expect(false, "gossip_pga with a spare");
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::argument, error.what());
    }
  });
}
