// Mixing weights: with which factors a worker combines its own and its neighbours' values.
#pragma once

#include <fast/topology/schedule.hpp>

#include <string_view>
#include <vector>

namespace fast {

enum class WeightRule {
  metropolis,       ///< W_ij = 1/(1+max(d_i,d_j)); symmetric, doubly stochastic; undirected graphs
  uniform_rows,     ///< 1/(d_i+1), d_i the in-degree; doubly stochastic on regular graphs
  uniform_columns,  ///< 1/(d_j+1), d_j the out-degree of j: column-stochastic, for push-sum
  given,            ///< the user's own (Topology::given_weights)
  automatic,        ///< given if there are any, else metropolis on undirected and uniform_rows on
                    ///< directed graphs
};

std::string_view name(WeightRule rule) noexcept;
/// Throws Error(argument) with the list of names on an unknown one.
WeightRule weight_rule_by_name(std::string_view name);

/// Row i of W: what worker i makes of its own value and of those it reads.
struct MixingRow {
  double self = 1;
  std::vector<int> neighbors;   ///< ascending
  std::vector<double> weights;  ///< along neighbors
};

/// O(degree) for stencils on a torus and for lists of neighbors, O(degree²) on open grids with
/// metropolis. With `lazy`, the row of (I+W)/2. Throws Error(topology) when the rule does not fit
/// the graph: metropolis on a directed one, given where no weights were given.
MixingRow mixing_row(const Topology& topology, int worker, WeightRule rule = WeightRule::automatic,
                     bool lazy = false);

/// The whole matrix, row-major, N×N: for small N and for tests.
std::vector<double> mixing_matrix(const Topology& topology, WeightRule rule = WeightRule::automatic,
                                  bool lazy = false);

}  // namespace fast
