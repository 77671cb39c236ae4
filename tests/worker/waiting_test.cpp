// Waits for workers that are slow, and for such as make no progress at all.
#include <atomic>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <thread>

#include "support/catch.hpp"
#include "worker/constant.hpp"

using namespace fast;
using Catch::Matchers::Contains;
using testing::Constant;

namespace {

constexpr auto step = std::chrono::milliseconds(20);
constexpr int slow_rounds = 300;  // twice as long as the deadline

WorkerOptions impatient() {
  WorkerOptions options = testing::quick();
  options.deadline = Seconds(3);  // a busy machine holds a worker for a second
  options.staleness = unbounded_staleness;
  return options;
}

void pace(int rank) {
  if (rank == 1) std::this_thread::sleep_for(step);
}

}  // namespace

TEST_CASE("a worker that has finished waits for one that makes rounds, however long") {
  CHECK_NOTHROW(local::run(2, [](const Group& group) {
    Constant c(group, stencil::ring(), group.rank(), impatient());
    const int rounds = group.rank() == 1 ? slow_rounds : 5;
    for (int t = 0; t < rounds; ++t) c.worker.step([&] { pace(group.rank()); });
    c.worker.await_finish();
    testing::expect(c.worker.departed().lost.empty(), "nobody is lost");
  }));
}

TEST_CASE("an average over all waits for a worker that makes rounds towards it") {
  CHECK_NOTHROW(local::run(2, [](const Group& group) {
    WorkerOptions options = impatient();
    options.staleness = 0;
    options.algorithm = algorithm::by_name("allreduce");
    options.mix_every = slow_rounds;
    Constant c(group, stencil::complete(), group.rank(), options);
    for (int t = 0; t < slow_rounds; ++t) {
      c.worker.step([&] {
        pace(group.rank());
        c.x[0] += group.rank();
      });
    }
    testing::expect_near(c.x[0], group.rank() + slow_rounds / 2.0, "the average of both updates");
    c.worker.await_finish();
  }));
}

TEST_CASE("a worker that lives but makes no progress ends the wait for it at the deadline") {
  std::atomic<bool> ended{false};
  std::string error;
  local::run(2, [&](const Group& group) {
    Constant c(group, stencil::ring(), group.rank(), impatient());
    if (group.rank() == 1) {
      c.worker.step([] {});
      while (!ended) std::this_thread::sleep_for(step);
      return;
    }
    try {
      c.worker.await_finish();
    } catch (const Error& expected) {
      if (expected.kind() == ErrorKind::deadline) error = expected.what();
    }
    ended = true;
  });
  CHECK_THAT(error, Contains("worker 0 has finished and waited") &&
                        Contains("s for worker 1, which has finished 1 rounds"));
}
