#include <cmath>
#include <fast/core/error.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <numbers>

#include "support/catch.hpp"

using namespace fast;
using Catch::Matchers::Contains;

TEST_CASE("dense and sparse ways agree with closed forms") {
  const int length =
      3000;  // a path with metropolis weights: 1 - (2 + 2 cos(pi / N)) / 3 ... by hand
  const Analysis line = analyze(stencil::grid1d().make(length));
  CHECK(line.gap->value == Approx((2 - 2 * std::cos(std::numbers::pi / length)) / 3).epsilon(1e-5));
  CHECK_FALSE(line.gap->is_bound);
  CHECK(line.diameter->value == length - 1);
  const Analysis star = analyze(graph::star().make(8));
  CHECK(star.gap->value == Approx(.125));
  CHECK(star.smallest_eigenvalue->value == Approx(0).margin(1e-12));
  CHECK(star.diameter->value == 2);
  const Analysis large_star = analyze(graph::star().make(900));
  CHECK(large_star.gap->value == Approx(1.0 / 900).epsilon(1e-5));
}

TEST_CASE("diameters of tori, hypercubes, trees and directed rings are known") {
  CHECK(analyze(stencil::torus2d({4, 6}).make(24)).diameter->value == 5);
  CHECK(analyze(stencil::hypercube().make(64)).diameter->value == 6);
  CHECK(analyze(stencil::ring(true).make(9)).diameter->value == 8);
  CHECK(analyze(graph::tree().make(15)).diameter->value == 6);
  CHECK(analyze(stencil::complete().make(9)).diameter->value == 1);
  CHECK(analyze(schedule::one_peer_exponential().make(8)).diameter->value == 3);
}

TEST_CASE("rounds to consensus follow from the gap, an exact schedule takes one period") {
  const Analysis ring = analyze(stencil::ring().make(16));
  CHECK(ring.rounds_to_consensus->value == std::ceil(std::log(1e-3) / std::log(1 - .050747)));
  CHECK(analyze(schedule::base(1).make(11)).rounds_to_consensus->value ==
        schedule::base(1).make(11).period());
  CHECK(analyze(schedule::base(1).make(11)).gap->value == 1);
  const Analysis pairs = analyze(schedule::random_matchings().make(50));
  CHECK_FALSE(pairs.gap);
  CHECK(pairs.rounds_to_consensus->value > 10);
  CHECK(pairs.rounds_to_consensus->value < 100);
  CHECK_FALSE(analyze(Topology("apart", {{1}, {0}, {3}, {2}})).rounds_to_consensus);
}

TEST_CASE("where the gap is not above 0, rounds are measured") {
  // Each reads 2 i and 2 i + 1 (mod 4): the exact average after two rounds, though the norm is 1.
  const std::vector<std::vector<double>> halves = {{.5}, {.5, .5}, {.5, .5}, {.5}};
  const Analysis de_bruijn = analyze(Topology("de Bruijn", {{1}, {2, 3}, {0, 1}, {2}}, halves));
  CHECK(de_bruijn.gap->value == Approx(0).margin(1e-9));
  REQUIRE(de_bruijn.rounds_to_consensus);
  CHECK(de_bruijn.rounds_to_consensus->value == 2);
  CHECK(de_bruijn.rounds_are_measured);
  // Eigenvalues 1, 0.5 and -0.4: about log2 1000 rounds.
  const Analysis star = analyze(graph::star().make(10), WeightRule::uniform_rows);
  CHECK(star.gap->value < 0);
  REQUIRE(star.rounds_to_consensus);
  CHECK(star.rounds_to_consensus->value >= 8);
  CHECK(star.rounds_to_consensus->value <= 12);
  // Values that move around a ring never agree.
  const std::vector<std::vector<double>> whole(3, {1.0});
  const Analysis shift = analyze(Topology("shift", {{2}, {0}, {1}}, whole));
  CHECK(shift.gap->value == Approx(0).margin(1e-9));
  CHECK_FALSE(shift.rounds_to_consensus);
}

TEST_CASE("the stability factor of a 4x4 torus with momentum is the known one") {
  const Analysis torus = analyze(stencil::torus2d().make(16));
  CHECK(awc_stability_factor(torus.smallest_eigenvalue->value, 0.9) == Approx(.76));
}

TEST_CASE("curves fall to zero for the complete graph and by the gap for a ring") {
  CHECK(consensus_curve(stencil::complete().make(8), 1)[1] == Approx(0).margin(1e-12));
  const std::vector<double> ring = consensus_curve(stencil::ring().make(16), 300);
  CHECK(ring[300] / ring[299] == Approx(1 - .050747).margin(1e-5));
}

TEST_CASE("fastest mixing weights reach the known optimum and are never worse than metropolis") {
  // A path: halves on every edge, second eigenvalue cos(pi / N) (Boyd et al. 2009).
  const Topology path = fastest_mixing(stencil::grid1d().make(6).at(0));
  CHECK(analyze(path).gap->value == Approx(1 - std::cos(std::numbers::pi / 6)).margin(3e-3));
  for (const TopologyRule& rule : {graph::star(), graph::tree(), stencil::grid2d()}) {
    const Topology topology = rule.make(12).at(0);
    const Analysis found = analyze(fastest_mixing(topology));
    CHECK(found.gap->value >= analyze(topology).gap->value - 1e-12);
    CHECK(found.check.doubly_stochastic());
    CHECK(found.check.nonnegative);
  }
  CHECK_THROWS_WITH(fastest_mixing(stencil::ring(true).make(5).at(0)), Contains("is directed"));
}
