// A program ends the waits of its own thread, whatever they are for.
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <fast/worker/worker.hpp>

#include <atomic>
#include <functional>
#include <thread>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"

using namespace fast;
using testing::expect;

namespace {

struct Stopped {};

void await(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Worker 1 makes the call while worker 0 does nothing, and is interrupted. Worker 0 goes on then.
void interrupt(const std::string& rule, const std::function<void(Worker&)>& call,
               bool goes_on = true) {
  std::atomic<bool> interrupted = false;
  local::run(2, [&](const Group& group) {
    std::vector<double> x(10, group.rank());
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::by_name(rule);
    options.deadline = Seconds(300);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    if (group.rank() == 0) {
      await(interrupted);
      if (goes_on) worker.step([] {});
      worker.finish();
      return;
    }
    bool thrown = false;
    try {
      const WaitCheck check([] { throw Stopped(); });
      call(worker);
    } catch (const Stopped&) {
      thrown = true;
      worker.finish();
    }
    interrupted = true;
    expect(thrown, rule + ": the wait has not ended");
  });
}

/// Rules that publish before the step wait in their second round: worker 0 has published its
/// initial weights.
void several_rounds(Worker& worker) {
  for (int round = 0; round < 3; ++round) {
    worker.begin_round();
    worker.end_round();
  }
}

}  // namespace

TEST_CASE("the wait of a round ends, and the others go on without the worker that finishes") {
  for (const char* rule : {"awc", "atc", "d2", "push_sum", "pairwise"})
    interrupt(rule, several_rounds);
}

TEST_CASE("the wait in an all-reduce ends") { interrupt("allreduce", several_rounds, false); }

TEST_CASE("the wait for the others' end ends") {
  interrupt("awc", [](Worker& worker) { worker.await_finish(); });
}

TEST_CASE("the update of a round whose wait was ended is not called in a later round") {
  std::atomic<bool> interrupted = false;
  local::run(2, [&](const Group& group) {
    std::vector<double> x(10, group.rank());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, testing::quick());
    if (group.rank() == 0) {
      await(interrupted);
      worker.step([] {});
      worker.finish();
      return;
    }
    int calls = 0;
    const PartUpdate<double> update = [&](std::size_t, std::span<double>) { ++calls; };
    bool thrown = false;
    try {
      const WaitCheck check([] { throw Stopped(); });
      for (int round = 0; round < 3; ++round) RotatingArena<double>(worker).end_round(update);
    } catch (const Stopped&) {
      thrown = true;
    }
    interrupted = true;
    const int before = calls;
    worker.end_round();
    expect(thrown, "the wait has not ended");
    expect(calls == before, "the update was called");
  });
}

TEST_CASE("step() announces the worker whose wait was ended as failed") {
  std::atomic<bool> interrupted = false;
  local::run(2, [&](const Group& group) {
    std::vector<double> x(10);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, testing::quick());
    if (group.rank() == 1) {
      const WaitCheck check([] { throw Stopped(); });
      try {
        for (int round = 0; round < 3; ++round) worker.step([] {});
      } catch (const Stopped&) {
      }
      interrupted = true;
      return;
    }
    await(interrupted);
    try {
      for (int round = 0; round < 3; ++round) worker.step([] {});
      expect(false, "nobody has failed");
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::peer_failed, error.what());
    }
  });
}

TEST_CASE("the waits of collective calls end: meeting, making a worker") {
  local::run(2, [&](const Group& group) {
    if (group.rank() == 0) return;
    const WaitCheck check([] { throw Stopped(); });
    int thrown = 0;
    try {
      group.barrier(Deadline(Seconds(300)), "a test");
    } catch (const Stopped&) {
      ++thrown;
    }
    try {
      std::vector<double> x(10);
      const Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, testing::quick());
    } catch (const Stopped&) {
      ++thrown;
    }
    expect(thrown == 2, "a wait has not ended");
  });
}
