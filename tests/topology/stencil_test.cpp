#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/stencil.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/graph_checks.hpp"
#include "topology/stencil_graph.hpp"

using namespace fast;
using Catch::Matchers::Contains;
using Workers = std::vector<int>;

namespace {
// Independent oracle: the definition, point by point.
Workers read_by(const GridShape& grid, const Offsets& offsets, int worker) {
  std::vector<int> place;
  for (int rest = worker, d = static_cast<int>(grid.sides.size()) - 1; d >= 0; --d) {
    place.insert(place.begin(), rest % grid.sides[d]);
    rest /= grid.sides[d];
  }
  std::set<int> found;
  for (const std::vector<int>& offset : offsets) {
    int neighbor = 0;
    bool inside = true;
    for (std::size_t d = 0; d < place.size(); ++d) {
      int moved = place[d] + offset[d];
      while (grid.periodic && moved < 0) moved += grid.sides[d];
      while (grid.periodic && moved >= grid.sides[d]) moved -= grid.sides[d];
      inside = inside && moved >= 0 && moved < grid.sides[d];
      neighbor = neighbor * grid.sides[d] + moved;
    }
    if (inside && neighbor != worker) found.insert(neighbor);
  }
  return {found.begin(), found.end()};
}
}  // namespace

TEST_CASE("a ring's workers read left and right, a directed ring's left only") {
  CHECK(made(stencil::ring(), 5).in_neighbors(0) == Workers{1, 4});
  CHECK(made(stencil::ring(true), 5).in_neighbors(0) == Workers{4});
  CHECK(made(stencil::ring(true), 5).out_neighbors(0) == Workers{1});
  CHECK_FALSE(made(stencil::ring(true), 5).is_symmetric());
  CHECK(made(stencil::ring(true), 2).is_symmetric());
  CHECK(made(stencil::ring(), 2).in_neighbors(0) == Workers{1});
  CHECK(made(stencil::ring(), 1).in_neighbors(0).empty());
}

TEST_CASE("a torus side of two names its neighbor once, a side of one nobody") {
  const Topology square = made(stencil::torus2d({2, 2}), 4);
  CHECK(square.name() == "torus 2x2");
  CHECK(square.in_neighbors(0) == Workers{1, 2});
  CHECK(square.in_neighbors(3) == Workers{1, 2});
  CHECK(made(stencil::torus2d({1, 4}), 4).in_neighbors(0) == Workers{1, 3});
  CHECK(made(stencil::torus3d({1, 2, 1}), 2).in_neighbors(1) == Workers{0});
  CHECK(made(stencil::torus2d({1, 1}), 1).in_neighbors(0).empty());
}

TEST_CASE("grids are row-major, tori wrap and open grids end") {
  CHECK(made(stencil::torus2d({3, 4}), 12).in_neighbors(0) == Workers{1, 3, 4, 8});
  CHECK(made(stencil::grid2d({3, 4}), 12).in_neighbors(0) == Workers{1, 4});
  CHECK(made(stencil::grid2d({3, 4}), 12).in_neighbors(5) == Workers{1, 4, 6, 9});
  CHECK(made(stencil::grid1d(), 3).in_neighbors(2) == Workers{1});
  CHECK(made(stencil::grid3d(), 27).in_neighbors(13) == Workers{4, 10, 12, 14, 16, 22});
}

TEST_CASE("complete, hypercube and exponential name whom they should") {
  CHECK(made(stencil::complete(), 4).in_neighbors(2) == Workers{0, 1, 3});
  CHECK(made(stencil::hypercube(), 8).in_neighbors(5) == Workers{1, 4, 7});
  CHECK(made(stencil::exponential(), 12).in_neighbors(0) == Workers{4, 8, 10, 11});
  CHECK(made(stencil::exponential(), 1).in_neighbors(0).empty());
  CHECK_THROWS_WITH(made(stencil::hypercube(), 6), Contains("start 4 or 8"));
}

TEST_CASE("sides are as even as the workers allow") {
  CHECK(balanced_sides(12, 2) == Workers{4, 3});
  CHECK(balanced_sides(4, 2) == Workers{2, 2});
  CHECK(balanced_sides(7, 2) == Workers{7, 1});
  CHECK(balanced_sides(12, 3) == Workers{3, 2, 2});
  CHECK(balanced_sides(64, 3) == Workers{4, 4, 4});
  CHECK(balanced_sides(16, 3) == Workers{4, 2, 2});
  CHECK(balanced_sides(36, 3) == Workers{4, 3, 3});
  CHECK(balanced_sides(1, 3) == Workers{1, 1, 1});
  CHECK(balanced_sides(1'000'000, 3) == Workers{100, 100, 100});
  CHECK_THROWS_WITH(balanced_sides(8, 4), Contains("1 to 3 dimensions"));
}

TEST_CASE("random stencils hold what a graph must and equal their definition") {
  const std::uint64_t seed = test_seed(5);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const int dimensions = 1 + static_cast<int>(rng.below(3));
    GridShape grid{{}, rng.below(2) == 0};
    const std::uint64_t longest = dimensions == 1 ? 200 : dimensions == 2 ? 14 : 5;
    for (int d = 0; d < dimensions; ++d) {
      grid.sides.push_back(1 + static_cast<int>(rng.below(longest)));
    }
    Offsets offsets;
    for (std::uint64_t k = 0; k <= rng.below(9); ++k) {
      offsets.emplace_back();
      for (int d = 0; d < dimensions; ++d) {
        offsets.back().push_back(static_cast<int>(rng.below(15)) - 7);
      }
    }
    const Topology topology("random", std::make_shared<StencilGraph>(grid, offsets));
    check_graph(topology);
    for (int i = 0; i < topology.workers(); ++i) {
      REQUIRE(topology.in_neighbors(i) == read_by(grid, offsets, i));
    }
  }
}

TEST_CASE("every named rule holds what a graph must, whatever the number of workers") {
  for (int n = 1; n <= 40; ++n) {
    for (const TopologyRule& rule :
         {stencil::ring(), stencil::ring(true), stencil::torus2d(), stencil::torus3d(),
          stencil::grid1d(), stencil::grid2d(), stencil::grid3d(), stencil::complete(),
          stencil::exponential()}) {
      check_graph(made(rule, n));
    }
  }
}

TEST_CASE("a stencil that cannot be says why") {
  CHECK_THROWS_WITH(stencil::torus2d({2, 2, 2}), Contains("3 sides (2x2x2), 2 are required"));
  CHECK_THROWS_WITH(stencil::torus2d({2, 0}), Contains("side 0 of grid 2x0"));
  CHECK_THROWS_WITH(stencil::torus2d({65536, 65536}), Contains("more workers than 2147483647"));
  CHECK_THROWS_WITH(stencil::on_grid("g", {{2, 2}}, {{1}}), Contains("offset (1) has 1 numbers"));
  CHECK_THROWS_WITH(stencil::on_grid("g", {}, {}), Contains("no offsets"));
  CHECK_THROWS_WITH(stencil::torus2d({2, 3}).make(4),
                    Contains("torus 2x3: made for 6 workers, this run has 4; start 6 workers"));
  CHECK_THROWS_WITH(stencil::ring().make(0), Contains("at least 1"));
}

TEST_CASE("one of a million workers knows its neighbors without the others") {
  const int n = 1'000'000;
  CHECK(made(stencil::ring(), n).in_neighbors(0) == Workers{1, n - 1});
  CHECK(made(stencil::torus2d(), n).in_neighbors(0) == Workers{1, 999, 1000, 999'000});
  CHECK(made(stencil::torus3d(), n).in_degree(123'456) == 6);
  CHECK(made(stencil::grid2d(), n).in_neighbors(n - 1) == Workers{998'999, 999'998});
  CHECK(made(stencil::exponential(), n).in_degree(7) == 20);
  CHECK(made(stencil::ring(), 2147483647).in_neighbors(2147483646) == Workers{0, 2147483645});
}
