// Mixing weights: with which factors a worker combines its own and its neighbors' values.
#pragma once

#include <fast/topology/schedule.hpp>
#include <fast/topology/weight_rule.hpp>

#include <vector>

namespace fast {

/// Row i of W: what worker i makes of its own value and of those it reads.
struct MixingRow {
  double self = 1;
  std::vector<int> neighbors;   ///< ascending
  std::vector<double> weights;  ///< along neighbors
};

/// O(degree) in time and memory. It is the row of (I+W)/2 with `lazy`, or when the topology asks
/// for it. Throws Error(topology) when the rule does not fit the graph: metropolis on a directed
/// one, given where no weights were given.
MixingRow mixing_row(const Topology& topology, int worker, WeightRule rule = WeightRule::automatic,
                     bool lazy = false);

/// The whole matrix, row-major, N×N: for small N and for tests.
std::vector<double> mixing_matrix(const Topology& topology, WeightRule rule = WeightRule::automatic,
                                  bool lazy = false);

}  // namespace fast
