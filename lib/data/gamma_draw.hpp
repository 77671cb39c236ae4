// Draws of shares: their gamma distribution.
#pragma once

#include <fast/core/random.hpp>

#include <cmath>

namespace fast::data {

/// The logarithm of a draw from Gamma(alpha, 1): for small alpha the draw itself underflows
/// (Marsaglia & Tsang 2000).
inline double log_gamma_draw(double alpha, Rng& rng) {
  const double d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal(), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - rng.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) {
      return std::log(d * v) + std::log(1 - rng.uniform()) / alpha;
    }
  }
}

}  // namespace fast::data
