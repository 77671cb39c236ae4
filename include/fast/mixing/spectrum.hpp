// What a mixing matrix promises: how fast a disagreement between workers shrinks.
#pragma once

#include <fast/mixing/weights.hpp>

#include <optional>

namespace fast {

struct Spectrum {
  double gap = 0;  ///< 1 - ‖W - 11ᵀ/N‖₂; of a schedule 1 - ‖∏W_t - 11ᵀ/N‖^(1/period)
  std::optional<double> smallest_eigenvalue;  ///< of a symmetric W
  bool doubly_stochastic = false;
  bool symmetric = false;
};

/// Of one matrix (schedules of period 1) or of one period's product.
Spectrum spectrum(const Schedule& schedule, WeightRule rule = WeightRule::automatic,
                  bool lazy = false);

}  // namespace fast
