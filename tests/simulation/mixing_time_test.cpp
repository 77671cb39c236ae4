#include <cmath>
#include <fast/core/error.hpp>
#include <fast/simulation/plan.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <numbers>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::simulation;
using Catch::Matchers::Contains;

namespace {

// Vogels et al.: with the eigenvalues λ of a symmetric W, the mean variance is
// (1/N) Σ λ² / (1 - γ λ²).
double ring_by_eigenvalues(int workers, double gamma) {
  double sum = 0;
  for (int k = 0; k < workers; ++k) {
    const double lambda = (1 + 2 * std::cos(2 * std::numbers::pi * k / workers)) / 3;
    sum += lambda * lambda / (1 - gamma * lambda * lambda);
  }
  return 1 / (1 - gamma) / (sum / workers);
}

}  // namespace

TEST_CASE("effective neighbors are N for exact averages and 1 without mixing") {
  CHECK(effective_neighbors(stencil::complete().make(12), 0.9) == Approx(12));
  const Topology alone("alone", std::vector<std::vector<int>>(5));
  CHECK(effective_neighbors(alone, 0.9) == Approx(1));
}

// By the distances in the tree, where the library passes messages on.
TEST_CASE("a tree that relays has the neighbors and the rounds of means of late values") {
  constexpr double gamma = 0.9;
  for (const TopologyRule& rule : {stencil::grid1d(), graph::star(), graph::tree()}) {
    for (const int workers : {2, 3, 7, 8}) {
      const Schedule tree = rule.make(workers);
      const auto count = static_cast<std::size_t>(workers);
      std::vector<std::vector<std::size_t>> far(count, std::vector<std::size_t>(count, count));
      for (std::size_t i = 0; i < count; ++i) {
        far[i][i] = 0;
        for (const int j : tree.at(0).in_neighbors(static_cast<int>(i)))
          far[i][static_cast<std::size_t>(j)] = 1;
      }
      for (std::size_t k = 0; k < count; ++k)
        for (std::size_t i = 0; i < count; ++i)
          for (std::size_t j = 0; j < count; ++j)
            far[i][j] = std::min(far[i][j], far[i][k] + far[k][j]);
      const auto next = [&](const std::vector<std::vector<double>>& past, double before) {
        std::vector<double> x(count);
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t j = 0; j < count; ++j) {
            const std::size_t age = std::max<std::size_t>(far[i][j], 1);
            x[i] += (age > past.size() ? before : past[past.size() - age][j]) / workers;
          }
        }
        return x;
      };
      constexpr int rounds = 87;  // 0.9^87 is 1e-4
      std::vector<double> moved(rounds), squares(rounds);
      for (std::size_t from = 0; from < count; ++from) {
        std::vector<std::vector<double>> past{std::vector<double>(count)};
        past[0][from] = 1;
        for (std::size_t t = 0; t < rounds; ++t) {
          past.push_back(next(past, 0));
          for (const double x : past.back()) {
            moved[t] += x / workers;
            squares[t] += x * x / workers;
          }
        }
      }
      double signal = 0, noise = 0;
      for (std::size_t t = 0; t < rounds; ++t) {
        signal += std::pow(gamma, t) * moved[t] * moved[t];
        noise += std::pow(gamma, t) * squares[t];
      }
      INFO(tree.name() << " of " << workers);
      const RelayMixing found = relay_mixing(tree, gamma);
      CHECK(found.neighbors == Approx(signal / noise).epsilon(1e-3));
      REQUIRE(found.rounds.has_value());
      if (workers == 2) CHECK(*found.rounds == 1);
      if (workers > 2) CHECK(*found.rounds < *rounds_to_consensus(tree));
    }
  }
}

TEST_CASE("effective neighbors of a ring follow from its eigenvalues") {
  for (const int workers : {5, 16, 64}) {
    for (const double gamma : {0.5, 0.9, 0.98}) {
      CHECK(effective_neighbors(stencil::ring().make(workers), gamma) ==
            Approx(ring_by_eigenvalues(workers, gamma)).epsilon(1e-3));
    }
  }
}

TEST_CASE("samples of many workers agree with the closed form") {
  CHECK(effective_neighbors(stencil::ring().make(4000), 0.951) ==
        Approx(ring_by_eigenvalues(4000, 0.951)).epsilon(1e-3));
}

TEST_CASE("effective neighbors of one-peer exponential follow from its exact averages") {
  // After k rounds of a period of 3, an impulse lies on 2^min(k,3) workers: squares 1/2^min(k,3).
  const double gamma = 0.9;
  const double noise = 1.0 / 2 + gamma / 4 + gamma * gamma / 8 / (1 - gamma);
  CHECK(effective_neighbors(schedule::one_peer_exponential().make(8), gamma) ==
        Approx(1 / (1 - gamma) / noise).epsilon(1e-3));
}

TEST_CASE("effective neighbors are means over all workers and rounds of a period") {
  // By dense products of all pairs of worker and first round, apart from this library.
  const double gamma = 0.951;
  const auto found = [&](const TopologyRule& rule, int workers) {
    return effective_neighbors(rule.make(workers), gamma);
  };
  CHECK(found(topology_from("hierarchical_one_peer"), 16) == Approx(7.1320).epsilon(1e-3));
  CHECK(found(topology_from("base2"), 10) == Approx(6.4491).epsilon(1e-3));
  CHECK(found(topology_from("base2"), 12) == Approx(7.6215).epsilon(1e-3));
  CHECK(found(topology_from("sites"), 16) == Approx(4.7579).epsilon(1e-3));  // a period of 400
}

TEST_CASE("a delay makes fewer effective neighbors, and consensus slower") {
  const Schedule ring = stencil::ring().make(32);
  CHECK(effective_neighbors(ring, 0.95, 2) < effective_neighbors(ring, 0.95));
  const double synchronous = *rounds_to_consensus(ring);
  // A slow mode 1 - ε becomes 1 - ε / (1 + d (1 - W_ii)).
  CHECK(*rounds_to_consensus(ring, 1) == Approx(synchronous * (1 + 2.0 / 3)).epsilon(0.05));
  CHECK(*rounds_to_consensus(stencil::ring().make(256), 2) ==
        Approx(*rounds_to_consensus(stencil::ring().make(256)) * (1 + 4.0 / 3)).epsilon(0.1));
}

TEST_CASE("what does not mix has no consensus, and wrong decays are refused") {
  const Topology apart("apart", std::vector<std::vector<int>>{{1}, {0}, {3}, {2}});
  CHECK_FALSE(rounds_to_consensus(apart));
  CHECK_FALSE(rounds_to_consensus(apart, 1));
  CHECK_THROWS_WITH(effective_neighbors(apart, 1), Contains("between 0 and 1"));
}
