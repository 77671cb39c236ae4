// The first weights and frozen tensors take longer over a slow link than the deadline.
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <fstream>
#include <functional>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "worker/quick.hpp"

using namespace fast;

namespace {

constexpr std::size_t slow_elements = 1'000'000;
constexpr double slow_bytes = 8e6;  // more than three seconds at 20 Mbit/s
constexpr Seconds shorter_than_that{2.5};

/// What this host's link has brought; 0 where nobody counts it.
double received_bytes() {
  double bytes = 0;
  std::ifstream("/sys/class/net/eth0/statistics/rx_bytes") >> bytes;
  return bytes;
}

/// Of all ranks of this host, while `work` runs on all.
double received_during(const std::function<void()>& work) {
  const Group group(testing::world());
  const Deadline deadline(Seconds(60));
  group.barrier(deadline, "before");
  const double before = received_bytes();
  group.barrier(deadline, "begin");
  work();
  group.barrier(Deadline(Seconds(60)), "after");
  return received_bytes() - before;
}

/// Of workers that send nothing but what they begin with.
WorkerOptions impatient() {
  WorkerOptions options;
  options.algorithm = algorithm::none();
  options.initial = Initial::broadcast;
  options.deadline = shorter_than_that;
  return options;
}

}  // namespace

TEST_CASE("a start that takes longer than the deadline comes to its end, and loads a link once") {
  std::vector<double> x(slow_elements, testing::world().rank() + 7);
  const double received = received_during([&] {
    Worker worker(testing::world(), stencil::ring(), {view_of("x", std::span(x))}, impatient());
  });
  CHECK(x.front() == 7);
  CHECK(x.back() == 7);
  INFO(received << " bytes received");
  CHECK(received < 1.7 * slow_bytes);
}

TEST_CASE("frozen tensors that differ are worker 0's after a start over a slow link") {
  const int rank = testing::world().rank();
  std::vector<double> x(5, rank), frozen(slow_elements, 3);
  frozen[slow_elements / 2] = rank;
  WorkerOptions options = impatient();
  options.frozen = {view_of("frozen", std::span(frozen))};
  const double received = received_during([&] {
    Worker worker(testing::world(), stencil::ring(), {view_of("x", std::span(x))}, options);
  });
  CHECK(frozen[slow_elements / 2] == 0);
  CHECK(frozen.back() == 3);
  INFO(received << " bytes received");
  CHECK(received < 1.7 * slow_bytes);
}

TEST_CASE("a cap on bytes to other hosts holds for the first weights, too") {
  constexpr double rate = 1e6;
  std::vector<double> x(slow_elements / 4, testing::world().rank() + 7);
  WorkerOptions options = impatient();
  options.remote_bytes_per_s = rate;
  const auto began = Clock::now();
  Worker worker(testing::world(), stencil::ring(), {view_of("x", std::span(x))}, options);
  CHECK(x.back() == 7);
  if (testing::several_hosts(Group(testing::world())))
    CHECK(Seconds(Clock::now() - began).count() > 0.8 * slow_bytes / 4 / rate);
}
