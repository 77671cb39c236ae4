#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mixing/weights.hpp>
#include <numeric>

namespace fast {
namespace {

WeightRule resolved(const Topology& topology, WeightRule rule) {
  if (rule == WeightRule::automatic) rule = topology.preferred_weights();
  if (rule != WeightRule::automatic) return rule;
  if (topology.has_given_weights()) return WeightRule::given;
  return topology.is_symmetric() ? WeightRule::metropolis : WeightRule::uniform_rows;
}

void set_metropolis(const Topology& topology, MixingRow& row) {
  require(topology.is_symmetric(), ErrorKind::topology,
          "mixing_row: {} is directed, metropolis weights need every edge both ways; choose "
          "uniform_rows, or uniform_columns with push_sum",
          topology.name());
  const auto degree = static_cast<int>(row.neighbors.size());
  for (const int j : row.neighbors) {
    row.weights.push_back(1.0 / (1 + std::max(degree, topology.in_degree(j))));
  }
  row.self = 1.0 - std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
}

void set_uniform_rows(MixingRow& row) {
  row.self = 1.0 / (1.0 + static_cast<double>(row.neighbors.size()));
  row.weights.assign(row.neighbors.size(), row.self);
}

void set_uniform_columns(const Topology& topology, int worker, MixingRow& row) {
  row.self = 1.0 / (1 + topology.out_degree(worker));
  for (const int j : row.neighbors) row.weights.push_back(1.0 / (1 + topology.out_degree(j)));
}

void set_given(const Topology& topology, int worker, MixingRow& row) {
  require(topology.has_given_weights(), ErrorKind::topology,
          "mixing_row: {} has no weights of its own; give some or choose metropolis, uniform_rows "
          "or uniform_columns",
          topology.name());
  row.self = topology.given_self_weight(worker);
  row.weights = topology.given_weights(worker);
}

}  // namespace

MixingRow mixing_row(const Topology& topology, int worker, WeightRule rule, bool lazy) {
  MixingRow row;
  row.neighbors = topology.in_neighbors(worker);
  row.weights.reserve(row.neighbors.size());
  switch (resolved(topology, rule)) {
    case WeightRule::metropolis:
      set_metropolis(topology, row);
      break;
    case WeightRule::uniform_columns:
      set_uniform_columns(topology, worker, row);
      break;
    case WeightRule::given:
      set_given(topology, worker, row);
      break;
    default:
      set_uniform_rows(row);
  }
  if (lazy || topology.prefers_lazy()) {
    row.self = (1 + row.self) / 2;
    for (double& weight : row.weights) weight /= 2;
  }
  return row;
}

std::vector<double> mixing_matrix(const Topology& topology, WeightRule rule, bool lazy) {
  const auto n = static_cast<std::size_t>(topology.workers());
  std::vector<double> matrix(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    const MixingRow row = mixing_row(topology, static_cast<int>(i), rule, lazy);
    matrix[i * n + i] = row.self;
    for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
      matrix[i * n + static_cast<std::size_t>(row.neighbors[k])] = row.weights[k];
    }
  }
  return matrix;
}

}  // namespace fast
