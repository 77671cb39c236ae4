// The names of the rules that make mixing weights (fast/mixing/weights.hpp has the rules).
#pragma once

#include <string_view>

namespace fast {

enum class WeightRule {
  metropolis,       ///< W_ij = 1/(1+max(d_i,d_j)); symmetric, doubly stochastic; undirected graphs
  uniform_rows,     ///< 1/(d_i+1), d_i the in-degree; doubly stochastic on regular graphs
  uniform_columns,  ///< 1/(d_j+1), d_j the out-degree of j: column-stochastic, for push-sum
  given,            ///< the user's own (Topology::given_weights)
  automatic,        ///< what the topology prefers (a file's key "weights"), else given if there are
                    ///< any, else metropolis on undirected and uniform_rows on directed graphs
};

std::string_view name(WeightRule rule) noexcept;
/// Throws Error(argument) with the list of names on an unknown one.
WeightRule weight_rule_by_name(std::string_view name);

}  // namespace fast
