// Payloads that take longer over a slow link than it takes to become a suspect.
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "worker/quick.hpp"

using namespace fast;

TEST_CASE("a worker whose long message is coming in is no suspect") {
  constexpr std::size_t elements = 1'000'000;  // 8 MB: more than three seconds at 20 Mbit/s
  for (const RemotePathChoice path : {RemotePathChoice::two_sided, RemotePathChoice::pull}) {
    WorkerOptions options = testing::quick();
    options.remote_path = path;
    options.suspect_after = Seconds(2);
    options.deadline = Seconds(2.5);  // from one part to the next
    options.weights = WeightRule::uniform_rows;
    std::vector<double> x(elements, testing::world().rank());
    Worker worker(testing::world(), stencil::complete(), {view_of("x", std::span(x))}, options);
    for (int round = 0; round < 2; ++round) worker.step([] {});
    CHECK(worker.stats().skipped == 0);
    const double mean = (testing::world().size() - 1) / 2.0;
    CHECK(x.front() == mean);
    CHECK(x.back() == mean);
  }
}
