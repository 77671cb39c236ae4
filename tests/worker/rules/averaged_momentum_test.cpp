// What averaging the momentum does to the distance between workers, and to stability.
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "support/catch.hpp"
#include "support/lockstep.hpp"
#include "support/seed.hpp"

namespace fast::testing::averaged_momentum {
namespace {

constexpr double beta = 0.9;

/// The variance of Σ_k c_k n_(t-k) for n of variance 1, where c is the power series of
/// 1 / ((1 - a z)(1 - b z)).
double variance(double a, double b) {
  return (1 + a * b) / ((1 - a * b) * (1 - a * a) * (1 - b * b));
}

/// Of a worker from the mean, for steps of uniform noise in [-1, 1], squared.
double measured_distance(const algorithm::Rule& rule, std::uint64_t seed) {
  constexpr int workers = 16, elements = 64, settled = 400, rounds = 4000;
  WorkerOptions options;
  options.algorithm = rule;
  const double outer = rule.traits().step.own_momentum ? 0 : beta;
  Lockstep<double> run(stencil::ring(), workers, std::vector<double>(elements), options);
  std::vector<std::vector<double>> velocity(workers, std::vector<double>(elements));
  Rng rng(seed);
  double sum = 0;
  for (int t = 0; t < settled + rounds; ++t) {
    run.round(
        [&](int worker, std::span<double> x) {
          auto& own = velocity[static_cast<std::size_t>(worker)];
          for (std::size_t e = 0; e < x.size(); ++e) {
            own[e] = outer * own[e] + rng.uniform(-1, 1);
            x[e] += own[e];
          }
        },
        1);
    if (t < settled) continue;
    const std::vector<double> mean = run.mean();
    for (int w = 0; w < workers; ++w) {
      for (std::size_t e = 0; e < mean.size(); ++e) sum += std::pow(run.x(w)[e] - mean[e], 2);
    }
  }
  return sum / (double{workers} * elements * rounds);
}

TEST_CASE("averaged momentum keeps workers as near as its closed form, momentum of their own not") {
  const std::uint64_t seed = test_seed(5);
  INFO("FAST_TEST_SEED=" << seed);
  // Of the ring's modes apart from the mean, 1/3 of uniform noise.
  double averaged = 0, averaged_after = 0, own = 0;
  for (int k = 1; k < 16; ++k) {
    const double mode = (1 + 2 * std::cos(2 * std::numbers::pi * k / 16)) / 3;
    averaged += variance(mode, beta * mode) / 48;
    averaged_after += mode * mode * variance(mode, beta * mode) / 48;
    own += variance(mode, beta) / 48;
  }
  CHECK(own > 2.1 * averaged);
  CHECK(averaged > 1.05 * averaged_after);
  const auto rule = [](bool atc) {
    return algorithm::averaged_momentum({.momentum = beta, .atc = atc});
  };
  CHECK(measured_distance(rule(false), seed) == Approx(averaged).epsilon(0.02));
  CHECK(measured_distance(rule(true), seed) == Approx(averaged_after).epsilon(0.02));
  CHECK(measured_distance(algorithm::awc(), seed) == Approx(own).epsilon(0.06));
}

/// The largest weight after many steps on a quadratic with γ·L = a.
double left_after_steps(const TopologyRule& graph, int workers, double momentum, bool lazy,
                        double a, bool atc = false) {
  WorkerOptions options;
  options.algorithm = algorithm::averaged_momentum({.momentum = momentum, .atc = atc});
  options.lazy_weights = lazy;
  Lockstep<double> run(graph, workers, {1.0}, options);
  double most = 0;
  for (int t = 0; t < 3000; ++t) {
    run.round(
        [&](int worker, std::span<double> x) {
          if (t == 0) x[0] += std::cos(1.0 + worker * worker);  // of all eigenvectors
          x[0] -= a * x[0];
        },
        a);
    if (t % 100 == 99 && std::abs(run.x(0)[0]) > 1e100) break;
  }
  for (int w = 0; w < workers; ++w) most = std::max(most, std::abs(run.x(w)[0]));
  return most;
}

TEST_CASE("averaged momentum is stable below its limit, and grows above it") {
  struct Case {
    TopologyRule graph;
    int workers;
    bool lazy;
  };
  for (const Case& one : {Case{stencil::torus2d(), 16, false}, Case{stencil::torus2d(), 16, true},
                          Case{stencil::ring(), 9, false}}) {
    const double smallest =
        *spectrum(one.graph.make(one.workers), WeightRule::automatic, one.lazy).smallest_eigenvalue;
    for (const double momentum : {0., .5, .9}) {
      CAPTURE(smallest, momentum);
      const double limit = averaged_momentum_stability_factor(smallest, momentum);
      CHECK(left_after_steps(one.graph, one.workers, momentum, one.lazy, .95 * limit) < 1e-3);
      CHECK(left_after_steps(one.graph, one.workers, momentum, one.lazy, 1.05 * limit) > 1e3);
      const double alone = 2 * (1 + momentum);  // the limit without exchange
      CHECK(left_after_steps(one.graph, one.workers, momentum, one.lazy, .95 * alone, true) < 1e-3);
      CHECK(left_after_steps(one.graph, one.workers, momentum, one.lazy, 1.05 * alone, true) > 1e3);
    }
  }
}

}  // namespace
}  // namespace fast::testing::averaged_momentum
