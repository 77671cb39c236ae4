// The linear algebra behind the analysis; the one file that sees Eigen and Spectra is eigen.cpp.
#pragma once

#include <vector>

#include "mixing/rows.hpp"

namespace fast {

/// ‖∏ rounds - 11ᵀ/N‖₂ by dense singular values.
double dense_norm(const std::vector<MixingRows>& rounds);

struct Extremes {
  double low = 0, high = 0;                          ///< of W on the vectors of sum zero
  bool low_converged = true, high_converged = true;  ///< else inside the true interval
};

/// Of a symmetric doubly stochastic W.
Extremes dense_extremes(const MixingRows& rows);
Extremes sparse_extremes(const MixingRows& rows);

/// One step's need of the fastest-mixing method: the norm and its eigenvector, signed so that
/// lowering the norm means lowering sign · vᵀWv.
struct NormVector {
  double norm = 0, sign = 1;
  std::vector<double> vector;
};
NormVector norm_vector(const std::vector<double>& matrix, std::size_t n);

}  // namespace fast
