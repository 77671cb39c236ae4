#include <fast/core/error.hpp>
#include <fast/topology/schedules.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "topology/graph_checks.hpp"

using namespace fast;
using Catch::Matchers::Contains;

TEST_CASE("a topology is a schedule that never changes") {
  const Schedule ring = stencil::ring().make(4);
  CHECK(ring.is_static());
  CHECK(ring.name() == "ring");
  CHECK(ring.at(0).in_neighbors(1) == ring.at(1'000'000'000'000).in_neighbors(1));
}

TEST_CASE("the one-peer exponential schedule reads one worker a round, in turn") {
  const Schedule schedule = schedule::one_peer_exponential().make(12);
  REQUIRE(schedule.period() == 4);
  CHECK(schedule.at(0).in_neighbors(0) == std::vector<int>{11});
  CHECK(schedule.at(1).in_neighbors(0) == std::vector<int>{10});
  CHECK(schedule.at(2).in_neighbors(0) == std::vector<int>{8});
  CHECK(schedule.at(3).in_neighbors(0) == std::vector<int>{4});
  CHECK(schedule.at(4).in_neighbors(0) == std::vector<int>{11});
  for (int n = 1; n <= 70; ++n) {
    const Schedule any = schedule::one_peer_exponential().make(n);
    for (std::int64_t t = 0; t < any.period(); ++t) check_graph(any.at(t));
  }
  CHECK(schedule::one_peer_exponential().make(1).at(0).in_neighbors(0).empty());
  const Schedule large = schedule::one_peer_exponential().make(1'000'000);
  CHECK(large.period() == 20);
  CHECK(large.at(19).in_neighbors(0) == std::vector<int>{1'000'000 - (1 << 19)});
}

TEST_CASE("listed rounds come in turn and agree on the number of workers") {
  const Topology ring = stencil::ring().make(4).at(0), all = stencil::complete().make(4).at(0);
  const Schedule turn("turn", {ring, all});
  CHECK(turn.period() == 2);
  CHECK(turn.at(3).in_degree(0) == 3);
  CHECK(turn.at(4).in_degree(0) == 2);
  CHECK_THROWS_WITH(Schedule("turn", {ring, stencil::ring().make(5).at(0)}),
                    Contains("ring has 4 workers, ring has 5"));
  CHECK_THROWS_WITH(Schedule("turn", std::vector<Topology>{}), Contains("no rounds"));
  CHECK_THROWS_WITH(turn.at(-1), Contains("asked for round -1"));
}

TEST_CASE("a topology is a rule for its own number of workers only") {
  const TopologyRule rule = Topology("pair", {{1}, {0}});
  CHECK(rule.make(2).workers() == 2);
  CHECK_THROWS_WITH(rule.make(3), Contains("pair: made for 2 workers, this run has 3"));
}
