// Mixing weights: with which factors a worker combines its own and its neighbors' values.
#pragma once

#include <fast/topology/topology.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace fast {

/// Row i of W: what worker i makes of its own value and of those it reads.
struct MixingRow {
  double self = 1;
  std::vector<int> neighbors;   ///< ascending
  std::vector<double> weights;  ///< along neighbors
  /// The weights along neighbors of each shard of the model, where a schedule has own ones for
  /// each: `weights` are those of shard 0. Empty: all of the model has the same.
  std::vector<std::vector<double>> shards{};
};

/// O(degree) in time and memory. It is the row of (I+W)/2 with `lazy`, or when the topology asks
/// for it. Throws Error(topology) when the rule does not fit the graph: metropolis on a directed
/// one, given where no weights were given.
MixingRow mixing_row(const Topology& topology, int worker, WeightRule rule = WeightRule::automatic,
                     bool lazy = false);

/// The whole matrix, row-major, N×N: for small N and for tests.
std::vector<double> mixing_matrix(const Topology& topology, WeightRule rule = WeightRule::automatic,
                                  bool lazy = false);

/// What a mixing matrix promises: how fast a disagreement between workers shrinks.
struct Spectrum {
  /// 1 - ‖W - 11ᵀ/N‖₂; of a schedule 1 - ‖∏W_t - 11ᵀ/N‖^(1/period), NaN when it never repeats.
  double gap = 0;
  std::optional<double> smallest_eigenvalue;  ///< of a symmetric W
  /// Rows and columns of W sum to 1 (to 1e-9); of a schedule, those of one period's product.
  bool doubly_stochastic = false;
  bool symmetric = false;
  /// Of a schedule whose period has the exact average (gap 1): rounds from round 0 until it is
  /// exact; 0: not known.
  std::int64_t exact_after = 0;
  bool converged = true;  ///< false: `gap` and `smallest_eigenvalue` are upper bounds
};

/// The spectrum of one matrix (schedules of period 1) or of one period's product. Stencils on a
/// torus have a closed form (O(N·degree·period)), Lanczos' method computes the rest. Throws
/// Error(topology) when the rule does not fit the graph.
Spectrum spectrum(const Schedule& schedule, WeightRule rule = WeightRule::automatic,
                  bool lazy = false);

/// The same where there is a closed form, nothing elsewhere.
std::optional<Spectrum> closed_form_spectrum(const Schedule& schedule,
                                             WeightRule rule = WeightRule::automatic,
                                             bool lazy = false);

/// (1 + λ_min)(1 + β): `awc` with momentum β on curvature L is stable for γ·L below it.
constexpr double awc_stability_factor(double smallest_eigenvalue, double momentum) {
  return (1 + smallest_eigenvalue) * (1 + momentum);
}

/// The same of `atc`: the limit 2(1 + β) of SGD, or (1 - β)(1 + 1/|λ_min|) where that is less, for
/// λ_min < 0. The part e of the weights along an eigenvector and its momentum v follow
/// v⁺ = β v - a e, e⁺ = λ(e + v⁺), with a = γ·L and the polynomial z² - (λ(1 - a) + β) z + λβ. A
/// negative λ turns each step around, so that the momentum grows.
constexpr double atc_stability_factor(double smallest_eigenvalue, double momentum) {
  const double sgd = 2 * (1 + momentum);
  if (smallest_eigenvalue >= 0) return sgd;
  return std::min(sgd, (1 - momentum) * (1 - 1 / smallest_eigenvalue));
}

/// The same of `averaged_momentum`, whose momentum neighbors average, too: v⁺ = βλ v - a e and
/// e⁺ = λ e + v⁺, with the polynomial z² - (λ(1 + β) - a) z + βλ².
constexpr double averaged_momentum_stability_factor(double smallest_eigenvalue, double momentum) {
  return (1 + smallest_eigenvalue) * (1 + momentum * smallest_eigenvalue);
}

}  // namespace fast
