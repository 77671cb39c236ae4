#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/catch.hpp"
#include "worker/scenarios/on_threads.hpp"

using namespace fast;

TEST_CASE("every scenario holds on threads") { testing::hold_on_threads(testing::scenarios()); }

TEST_CASE("local::run reports the first error and refuses nobody") {
  CHECK_THROWS_WITH(local::run(3,
                               [](const Group& group) {
                                 if (group.rank() == 1) fail(ErrorKind::data, "no data here");
                                 group.barrier(Deadline(Seconds(20)), "meeting");
                               }),
                    "no data here");
  CHECK_THROWS_AS(local::run(0, [](const Group&) {}), Error);
}

TEST_CASE("a worker on a worker count that the topology does not fit is refused") {
  const Topology pair("pair", std::vector<std::vector<int>>{{1}, {0}});
  std::vector<float> x(3);
  CHECK_THROWS_AS(local::run(3,
                             [&](const Group& group) {
                               std::vector<float> mine(3);
                               Worker worker(group, pair, {view_of("x", std::span(mine))});
                             }),
                  Error);
}
