// Extreme eigenvalues of a symmetric operator.
#pragma once

#include <functional>
#include <span>

namespace fast {

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

}  // namespace fast
