// A mixing matrix W by its rows, with products and norms.
#pragma once

#include <fast/mixing/weights.hpp>

#include <functional>
#include <span>
#include <vector>

namespace fast {

// Extreme eigenvalues of a symmetric operator.

/// y = A x, both of length n.
using LinearOperator = std::function<void(std::span<const double> x, std::span<double> y)>;

struct ExtremeEigenvalues {
  double low = 0;
  double high = 0;
  bool converged = false;  ///< otherwise they lie inside the true interval
};

/// Lanczos' method with full reorthogonalization from a fixed random vector. With
/// `orthogonal_to_ones` A must map vectors of sum zero to such, and its other eigenvalue is left
/// out (for n = 1 nothing is left: both are 0). Couplings up to `negligible` count as zero. Memory:
/// at most `memory_doubles`.
ExtremeEigenvalues extreme_eigenvalues(const LinearOperator& a, int n, bool orthogonal_to_ones,
                                       double negligible, std::size_t memory_doubles = 20'000'000);

using MixingRows = std::vector<MixingRow>;

MixingRows mixing_rows(const Topology& topology, WeightRule rule, bool lazy);

/// W x. Workers see the values of others as they are in `seen`: the second form has x for both.
std::vector<double> times(const MixingRows& rows, std::span<const double> x,
                          std::span<const double> seen);
std::vector<double> times(const MixingRows& rows, std::span<const double> x);
/// Wᵀ x.
std::vector<double> transposed_times(const MixingRows& rows, std::span<const double> x);

/// The weight that the row's worker gives to another one. It is 0 for one that it does not read.
double weight_of(const MixingRow& row, int other);
/// True if no W_ij differs from W_ji by more than `tolerance`.
bool is_symmetric(const MixingRows& rows, double tolerance);

/// A norm that is not above this one is that of rounding errors.
inline constexpr double rounding_of_norms = 1e-12;

/// `high` is ‖∏W - 11ᵀ/N‖². Memory: at most `memory_doubles`.
ExtremeEigenvalues squared_norm(const std::vector<MixingRows>& rounds,
                                std::size_t memory_doubles = 20'000'000);
/// The spectral gap of one round, from the norm of so many.
double gap_of(double norm, std::int64_t rounds);

}  // namespace fast
