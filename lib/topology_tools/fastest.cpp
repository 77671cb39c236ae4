#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/topology_tools/analysis.hpp>

#include "topology_tools/eigen.hpp"

namespace fast {
namespace {

constexpr int most_workers = 200;
constexpr int steps = 1500;

struct Edge {
  int a, b;
};

// Weights of an edge are not negative, and a worker's sum to at most 1.
void project(std::vector<double>& weights, const std::vector<Edge>& edges, int workers) {
  for (double& weight : weights) weight = std::max(0.0, weight);
  std::vector<std::vector<std::size_t>> at(static_cast<std::size_t>(workers));
  for (std::size_t e = 0; e < edges.size(); ++e) {
    at[edges[e].a].push_back(e);
    at[edges[e].b].push_back(e);
  }
  for (const std::vector<std::size_t>& own : at) {
    for (;;) {  // onto the half-space, among the weights that are still positive
      double sum = 0;
      int positive = 0;
      for (const std::size_t e : own) {
        sum += weights[e];
        positive += weights[e] > 0 ? 1 : 0;
      }
      if (sum <= 1 + 1e-12) break;
      for (const std::size_t e : own) weights[e] = std::max(0.0, weights[e] - (sum - 1) / positive);
    }
  }
}

std::vector<double> matrix_of(const std::vector<double>& weights, const std::vector<Edge>& edges,
                              std::size_t n) {
  std::vector<double> matrix(n * n);
  for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] = 1;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto a = static_cast<std::size_t>(edges[e].a), b = static_cast<std::size_t>(edges[e].b);
    matrix[a * n + b] = matrix[b * n + a] = weights[e];
    matrix[a * n + a] -= weights[e];
    matrix[b * n + b] -= weights[e];
  }
  return matrix;
}

}  // namespace

Topology fastest_mixing(const Topology& topology) {
  require(topology.is_symmetric(), ErrorKind::topology,
          "fastest_mixing: {} is directed, an undirected graph is required", topology.name());
  require(topology.workers() <= most_workers, ErrorKind::topology,
          "fastest_mixing: {} workers, at most {} are possible; choose metropolis",
          topology.workers(), most_workers);
  const auto n = static_cast<std::size_t>(topology.workers());
  std::vector<Edge> edges;
  std::vector<double> weights;
  for (int i = 0; i < topology.workers(); ++i) {
    const MixingRow row = mixing_row(topology, i, WeightRule::metropolis);
    for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
      if (row.neighbors[k] < i) continue;
      edges.push_back({i, row.neighbors[k]});
      weights.push_back(row.weights[k]);
    }
  }
  std::vector<double> best = weights;
  double least = 2;
  for (int step = 1; step <= steps && !edges.empty(); ++step) {
    const NormVector at = norm_vector(matrix_of(weights, edges, n), n);
    if (at.norm < least) {
      least = at.norm;
      best = weights;
    }
    double length = 0;
    std::vector<double> grad;
    for (const Edge& edge : edges) {
      const double difference = at.vector[edge.a] - at.vector[edge.b];
      grad.push_back(-at.sign * difference * difference);
      length += grad.back() * grad.back();
    }
    if (length < 1e-24) break;
    const double size = 0.3 / std::sqrt(length * static_cast<double>(n)) * 4 / (step + 3.0);
    for (std::size_t e = 0; e < edges.size(); ++e) weights[e] -= size * grad[e];
    project(weights, edges, topology.workers());
  }
  std::vector<std::vector<int>> in(n);
  std::vector<std::vector<double>> row_weights(n);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    in[edges[e].a].push_back(edges[e].b);
    in[edges[e].b].push_back(edges[e].a);
    row_weights[edges[e].a].push_back(best[e]);
    row_weights[edges[e].b].push_back(best[e]);
  }
  return {topology.name() + ", fastest mixing", std::move(in), std::move(row_weights)};
}

}  // namespace fast
