#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/graph_checks.hpp"
#include "topology/stencil_graph.hpp"

using namespace fast;
using Catch::Matchers::Contains;
using Workers = std::vector<int>;

TEST_CASE("a star, a tree and a hierarchy name whom they should") {
  CHECK(made(graph::star(2), 4).in_neighbors(2) == Workers{0, 1, 3});
  CHECK(made(graph::star(2), 4).in_neighbors(0) == Workers{2});
  CHECK(made(graph::tree(), 7).in_neighbors(1) == Workers{0, 3, 4});
  CHECK(made(graph::tree(3), 7).in_neighbors(0) == Workers{1, 2, 3});
  const Topology hosts = made(graph::hierarchical(stencil::ring(), 3), 9);
  CHECK(hosts.in_neighbors(0) == Workers{1, 2, 3, 6});
  CHECK(hosts.in_neighbors(4) == Workers{3, 5});
  const Topology named = made(graph::hierarchical(stencil::ring(), {7, 3, 7, 3, 3}, 2), 5);
  CHECK(named.in_neighbors(0) == Workers{1, 2});
  CHECK(named.in_neighbors(2) == Workers{0, 3});
  CHECK(named.in_neighbors(4) == Workers{1, 3});
  CHECK_THROWS_WITH(made(graph::star(4), 4), Contains("center 4, this run has 4 workers"));
}

TEST_CASE("random graphs are what they say, the same for a seed and others for another") {
  const std::uint64_t seed = test_seed(23);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 60; ++trial) {
    const int n = 1 + static_cast<int>(rng.below(200));
    const int degree = 2 + 2 * static_cast<int>(rng.below(8));
    const Topology regular = made(graph::random_regular(degree, rng()), n);
    check_graph(regular);
    for (int i = 0; i < n; ++i) REQUIRE(regular.in_degree(i) == std::min(degree, n - 1));
    check_graph(made(graph::erdos_renyi({}, rng()), n));
    check_graph(made(graph::small_world(degree, rng.uniform(), rng()), n));
    check_graph(made(graph::hierarchical(stencil::torus2d(), 1 + degree / 3, degree / 2), n));
    check_graph(made(graph::tree(degree), n));
  }
  const auto neighbors = [](std::uint64_t s) {
    return made(graph::random_regular(4, s), 100).in_neighbors(0);
  };
  CHECK(neighbors(5) == neighbors(5));
  CHECK(neighbors(5) != neighbors(6));
  CHECK_THROWS_WITH(made(graph::random_regular(3), 7), Contains("choose degree 2 or 4"));
  CHECK_THROWS_WITH(made(graph::erdos_renyi(0.001), 50), Contains("raise the probability"));
}

TEST_CASE("every name makes proper graphs over a period, whatever the number of workers") {
  for (const TopologyName& name : topology_names()) {
    for (int n = 1; n <= 40; ++n) {
      if (name.name == "hypercube" && (n & (n - 1)) != 0) continue;
      const Schedule schedule = topology_by_name(name.name).make(n);
      CHECK(is_schedule_name(name.name) == name.is_schedule);
      for (std::int64_t t = 0; t < std::max<std::int64_t>(5, schedule.period()); ++t) {
        check_graph(schedule.at(t));
      }
    }
  }
}

TEST_CASE("random regular graphs of many workers are made once and quickly enough to be of use") {
  const Topology large = made(graph::random_regular(4), 100'000);
  CHECK(large.in_degree(99'999) == 4);
  CHECK(made(graph::small_world(), 100'000).workers() == 100'000);
}

TEST_CASE(
    "weights of offsets add where they reach the same worker and stay where they reach none") {
  const Offsets sides = {{0, 1}, {0, -1}, {1, 0}};
  const WeightedStencilGraph torus({{2, 2}}, sides, {0.25, 0.125, 0.5});
  CHECK(torus.in_weights(0) == std::vector<double>{0.375, 0.5});
  CHECK(torus.self_weight(0) == 0.125);
  const WeightedStencilGraph open({{2, 2}, false}, sides, {0.25, 0.125, 0.5});
  CHECK(open.in_weights(0) == std::vector<double>{0.25, 0.5});
  CHECK(open.self_weight(3) == 0.875);
  CHECK_THROWS_WITH(WeightedStencilGraph({{3}}, {{1}}, {1.5}), Contains("sum to 1.5"));
}
