#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <set>

#include "support/catch.hpp"
#include "topology/graph_checks.hpp"
#include "topology/matchings.hpp"

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

TEST_CASE("a permutation takes every value once and knows its inverse") {
  for (const std::uint32_t size : {1u, 2u, 3u, 5u, 16u, 17u, 1000u}) {
    const Permutation permutation(size, 42);
    std::set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < size; ++i) {
      seen.insert(permutation(i));
      REQUIRE(permutation(i) < size);
      REQUIRE(permutation.inverse(permutation(i)) == i);
    }
    CHECK(seen.size() == size);
  }
  CHECK(Permutation(1'000'000, 1)(7) != Permutation(1'000'000, 2)(7));
}

TEST_CASE("alternating pairs take every edge of the ring once a period") {
  const Schedule even = schedule::alternating_pairs().make(6);
  REQUIRE(even.period() == 2);
  CHECK(even.at(0).in_neighbors(0) == std::vector<int>{1});
  CHECK(even.at(1).in_neighbors(0) == std::vector<int>{5});
  const Schedule odd = schedule::alternating_pairs().make(5);
  REQUIRE(odd.period() == 3);
  CHECK(odd.at(0).in_neighbors(4).empty());
  CHECK(odd.at(2).in_neighbors(4) == std::vector<int>{0});
  const Schedule torus = schedule::alternating_pairs_torus({3, 4}).make(12);
  CHECK(torus.period() == 5);
  std::set<std::pair<int, int>> edges;
  for (std::int64_t t = 0; t < torus.period(); ++t) {
    for (int i = 0; i < 12; ++i) {
      for (const int j : torus.at(t).in_neighbors(i)) REQUIRE(edges.emplace(i, j).second);
    }
  }
  CHECK(edges.size() == 48);
}

TEST_CASE("random matchings pair all but an odd one out, anew each round") {
  for (const int n : {2, 7, 100}) {
    const Schedule schedule = schedule::random_matchings(3).make(n);
    int alone = 0;
    for (int i = 0; i < n; ++i) alone += schedule.at(9).in_degree(i) == 0 ? 1 : 0;
    CHECK(alone == n % 2);
  }
  const Schedule large = schedule::random_matchings(3).make(1'000'000);
  CHECK(large.period() == 0);
  CHECK(large.at(0).in_neighbors(5) != large.at(1).in_neighbors(5));
  const int other = large.at(123'456'789'012).in_neighbors(5).front();
  CHECK(large.at(123'456'789'012).in_neighbors(other) == std::vector<int>{5});
  CHECK(schedule::equidyn(3).make(1'000'000).at(77).in_degree(999'999) == 1);
}

TEST_CASE("one of a million workers knows its part of a Base-(k+1) round without the others") {
  const Schedule large = schedule::base(1).make(1'000'003);
  CHECK(large.period() <= 42);
  for (std::int64_t t = 0; t < large.period(); ++t) {
    for (const int i : {0, 1, 524'288, 999'999, 1'000'002}) {
      const std::vector<int> neighbors = large.at(t).in_neighbors(i);
      REQUIRE(neighbors.size() <= 1);
      if (!neighbors.empty()) {
        REQUIRE(large.at(t).in_neighbors(neighbors[0]) == std::vector<int>{i});
      }
    }
  }
}

TEST_CASE("one of a million workers knows its neighbors in every schedule without the others") {
  for (const TopologyName& name : topology_names()) {
    if (!name.is_schedule) continue;
    INFO(name.name);
    const Schedule large = topology_by_name(name.name).make(1'000'000);
    for (const std::int64_t t : {0, 1, 5, 19}) {
      const Topology topology = large.at(t);
      for (const int i : {0, 1, 123'456, 999'999}) {
        const std::vector<int> read = topology.in_neighbors(i);
        REQUIRE(read.size() <= 3);
        for (const int j : read) {
          const std::vector<int> readers = topology.out_neighbors(j);
          REQUIRE(std::binary_search(readers.begin(), readers.end(), i));
        }
      }
    }
  }
}
