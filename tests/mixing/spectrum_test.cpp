#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <numbers>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {
// The same graph as lists of neighbors: what takes Lanczos' way instead of the closed form.
Topology as_lists(const Topology& topology) {
  std::vector<std::vector<int>> in;
  std::vector<std::vector<double>> weights;
  std::vector<double> own;
  for (int i = 0; i < topology.workers(); ++i) {
    in.push_back(topology.in_neighbors(i));
    if (!topology.has_given_weights()) continue;
    weights.push_back(topology.given_weights(i));
    own.push_back(topology.given_self_weight(i));
  }
  if (weights.empty()) return {topology.name(), in};
  return {topology.name(), in, weights, own};
}

Schedule as_lists(const Schedule& schedule) {
  std::vector<Topology> rounds;
  for (std::int64_t t = 0; t < schedule.period(); ++t) rounds.push_back(as_lists(schedule.at(t)));
  return {schedule.name(), rounds};
}

Schedule moore_torus(int side) {
  return stencil::on_grid("moore", {{side, side}}, moore(2)).make(side * side);
}

Schedule star(int workers) {
  std::vector<std::vector<int>> in(static_cast<std::size_t>(workers), {0});
  in[0].clear();
  for (int r = 1; r < workers; ++r) in[0].push_back(r);
  return Topology("star", in);
}

void check(const Schedule& schedule, double gap, double smallest) {
  for (const Schedule& way : {schedule, as_lists(schedule)}) {
    INFO(schedule.name() << " " << schedule.workers());
    const Spectrum found = spectrum(way, WeightRule::metropolis);
    CHECK(found.gap == Approx(gap).margin(1e-6));
    REQUIRE(found.smallest_eigenvalue);
    CHECK(*found.smallest_eigenvalue == Approx(smallest).margin(1e-6));
    CHECK(found.doubly_stochastic);
    CHECK(found.symmetric);
    CHECK(found.converged);
  }
}
}  // namespace

TEST_CASE("gaps and smallest eigenvalues of symmetric graphs are the known ones") {
  check(stencil::ring().make(8), .195262, -1. / 3);
  check(stencil::ring().make(16), .050747, -1. / 3);
  check(stencil::ring().make(64), .003210, -1. / 3);
  check(stencil::torus2d({2, 2}).make(4), .666667, -1. / 3);
  check(stencil::torus2d({2, 4}).make(8), .5, -.5);
  check(stencil::torus2d({3, 3}).make(9), .6, -.2);
  check(stencil::torus2d({4, 4}).make(16), .4, -.6);
  check(stencil::torus2d({8, 8}).make(64), .117157, -.6);
  check(stencil::grid2d({4, 4}).make(16), .131359, -.430843);
  check(moore_torus(4), .666667, -1. / 3);
  check(moore_torus(8), .195262, -1. / 3);
  check(stencil::torus3d({4, 4, 4}).make(64), .285714, -.714286);
  check(stencil::hypercube().make(16), .4, -.6);
  check(star(8), .125, 0);
}

TEST_CASE("gaps of the exponential graph are the known ones and it is not symmetric") {
  const std::pair<int, double> known[] = {
      {8, .5}, {12, .4}, {16, .4}, {64, .285714}, {256, .222222}};
  for (const auto& [n, gap] : known) {
    const Schedule graph = stencil::exponential().make(n);
    for (const Schedule& way : {graph, as_lists(graph)}) {
      const Spectrum found = spectrum(way, WeightRule::uniform_rows);
      CHECK(found.gap == Approx(gap).margin(1e-6));
      CHECK(found.doubly_stochastic);
      CHECK_FALSE(found.symmetric);
      CHECK_FALSE(found.smallest_eigenvalue);
    }
  }
}

TEST_CASE("a schedule's gap is that of one period's product") {
  for (const int n : {2, 4, 8, 16, 64}) {
    CHECK(spectrum(schedule::one_peer_exponential().make(n)).gap == 1);
  }
  CHECK(spectrum(as_lists(schedule::one_peer_exponential().make(8))).gap == 1);
  const Schedule twelve = schedule::one_peer_exponential().make(12);
  const double gap = spectrum(twelve).gap;
  CHECK(gap > 0.3);
  CHECK(gap < 0.9);
  CHECK(spectrum(as_lists(twelve)).gap == Approx(gap).margin(1e-9));

  const Topology ring = stencil::ring().make(9).at(0);
  CHECK(spectrum(Schedule("twice", {ring, ring})).gap == Approx(spectrum(Schedule(ring)).gap));
}

TEST_CASE("closed forms and Lanczos agree on random tori and offsets") {
  const std::uint64_t seed = test_seed(17);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 40; ++trial) {
    const std::vector<int> sides = {1 + static_cast<int>(rng.below(12)),
                                    1 + static_cast<int>(rng.below(12))};
    Offsets offsets;
    for (std::uint64_t k = 0; k <= rng.below(4); ++k) {
      offsets.push_back({static_cast<int>(rng.below(7)) - 3, static_cast<int>(rng.below(7)) - 3});
      if (trial % 2 == 0) offsets.push_back({-offsets.back()[0], -offsets.back()[1]});
    }
    const Schedule graph = stencil::on_grid("random", {sides}, offsets).make(sides[0] * sides[1]);
    const bool lazy = rng.below(2) == 1;
    const Spectrum closed = spectrum(graph, WeightRule::automatic, lazy);
    const Spectrum iterated = spectrum(as_lists(graph), WeightRule::automatic, lazy);
    INFO(graph.name() << " " << trial);
    CHECK(iterated.gap == Approx(closed.gap).margin(1e-7));
    CHECK(iterated.symmetric == closed.symmetric);
    CHECK(iterated.smallest_eigenvalue.value_or(9) ==
          Approx(closed.smallest_eigenvalue.value_or(9)).margin(1e-7));
  }
}

TEST_CASE("workers that read all others with different weights have the known gaps") {
  // Eigenvalues 0.1 + 0.8 cos(pi k / 2) + 0.1 cos(pi k): 0, -0.6, 0.
  const Schedule four = stencil::on_grid("four", {{4}}, {{-1}, {1}, {2}}, {0.4, 0.4, 0.1}).make(4);
  // 0.375 + 0.5 w + 0.125 / w with w a third root of 1: |0.0625 + i 0.375 sqrt(3) / 2|
  const Schedule three = stencil::on_grid("upwind", {{3}}, {{-1}, {1}}, {0.5, 0.125}).make(3);
  for (const Schedule& way : {four, as_lists(four)}) {
    CHECK(spectrum(way).gap == Approx(0.4));
    CHECK(spectrum(way).smallest_eigenvalue.value_or(9) == Approx(-0.6));
  }
  const double norm = std::hypot(0.0625, 0.375 * std::sqrt(3) / 2);
  for (const Schedule& way : {three, as_lists(three)}) {
    CHECK(spectrum(way).gap == Approx(1 - norm));
    CHECK_FALSE(spectrum(way).smallest_eigenvalue);
  }
}

TEST_CASE("closed forms and Lanczos agree on random weights of all neighbors") {
  const std::uint64_t seed = test_seed(18);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 20; ++trial) {
    const int workers = 3 + static_cast<int>(rng.below(6));
    Offsets offsets;
    std::vector<double> weights;
    for (int k = 1; k < workers; ++k) {
      offsets.push_back({k});
      weights.push_back(rng.uniform() / workers);
    }
    const Schedule graph = stencil::on_grid("all", {{workers}}, offsets, weights).make(workers);
    INFO(workers << " workers, trial " << trial);
    CHECK(spectrum(as_lists(graph)).gap == Approx(spectrum(graph).gap).margin(1e-7));
  }
}

TEST_CASE("lazy weights halve the gap and lift the smallest eigenvalue") {
  const Spectrum lazy = spectrum(stencil::torus2d({4, 4}).make(16), WeightRule::metropolis, true);
  CHECK(lazy.gap == Approx(0.2));
  CHECK(*lazy.smallest_eigenvalue == Approx(0.2));
}

TEST_CASE("one worker and a disconnected graph are the extremes") {
  for (const Schedule& alone : {stencil::ring().make(1), as_lists(stencil::ring().make(1))}) {
    CHECK(spectrum(alone).gap == 1);
    CHECK(*spectrum(alone).smallest_eigenvalue == 1);
  }
  CHECK(spectrum(Topology("apart", {{1}, {0}, {3}, {2}})).gap == Approx(0).margin(1e-12));
  CHECK(spectrum(stencil::complete().make(7)).gap == 1);
  CHECK(spectrum(as_lists(stencil::complete().make(7))).gap == 1);
}

TEST_CASE("weights that are not doubly stochastic are seen as such") {
  const Spectrum rows = spectrum(star(6), WeightRule::uniform_rows);
  CHECK_FALSE(rows.doubly_stochastic);
  CHECK_FALSE(rows.symmetric);
}

TEST_CASE("large tori have their closed form, long lines an iterated value") {
  const int n = 100'000;
  const double lambda = (1 + 2 * std::cos(2 * std::numbers::pi / n)) / 3;
  CHECK(spectrum(stencil::ring().make(n)).gap == Approx(1 - lambda).epsilon(1e-6));

  const int length = 300;  // a path's second eigenvalue: 1 - (2 - 2 cos(pi / N)) / 3
  const Spectrum line = spectrum(stencil::grid1d().make(length));
  CHECK(line.converged);
  CHECK(line.gap == Approx((2 - 2 * std::cos(std::numbers::pi / length)) / 3).epsilon(1e-6));
}

TEST_CASE("a schedule that never repeats has no gap") {
  const Topology ring = stencil::ring().make(4).at(0);
  const Schedule endless("endless", 4, 0, [ring](std::int64_t) { return ring; });
  CHECK(std::isnan(spectrum(endless).gap));
  CHECK(spectrum(endless).doubly_stochastic);
}

namespace {

/// The largest weight after many steps on a quadratic with γ·L = a, from the weights of worker k.
double left_after_steps(const std::vector<double>& w, double a, double momentum, bool is_atc) {
  const auto n = static_cast<std::size_t>(std::lround(std::sqrt(w.size())));
  std::vector<double> x(n), velocity(n), before(n);
  Rng rng(3);
  for (double& value : x) value = rng.uniform(-1, 1);
  for (int step = 0; step < 4000; ++step) {
    for (std::size_t i = 0; i < n; ++i) velocity[i] = momentum * velocity[i] - a * x[i];
    before = x;
    for (std::size_t i = 0; i < n && is_atc; ++i) before[i] += velocity[i];
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = is_atc ? 0 : velocity[i];
      for (std::size_t j = 0; j < n; ++j) x[i] += w[i * n + j] * before[j];
    }
  }
  double most = 0;
  for (const double value : x)
    most = std::isfinite(value) ? std::max(most, std::abs(value)) : 1e300;
  return most;
}

}  // namespace

TEST_CASE("below the limits of awc and atc the weights fall on a quadratic, above them they grow") {
  const Topology graphs[] = {
      stencil::torus2d().make(16).at(0), stencil::ring().make(9).at(0),
      stencil::torus2d().make(16).at(0).with_weights(WeightRule::automatic, true)};
  for (const Topology& graph : graphs) {
    const std::vector<double> w = mixing_matrix(graph);
    const double smallest = *spectrum(Schedule(graph)).smallest_eigenvalue;
    for (const double momentum : {0., .5, .9}) {
      CAPTURE(graph.name(), smallest, momentum);
      const double awc = awc_stability_factor(smallest, momentum);
      const double atc = atc_stability_factor(smallest, momentum);
      CHECK(left_after_steps(w, .95 * awc, momentum, false) < 1e-3);
      CHECK(left_after_steps(w, 1.05 * awc, momentum, false) > 1e3);
      CHECK(left_after_steps(w, .95 * atc, momentum, true) < 1e-3);
      CHECK(left_after_steps(w, 1.05 * atc, momentum, true) > 1e3);
    }
  }
}
