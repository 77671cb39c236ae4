// awc that goes a part of the way to its neighbors' average: what that does to each element.
#pragma once

#include <algorithm>
#include <cmath>
#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"

namespace fast::algorithm {

/// Memory: none beyond the slots. Bytes: P a neighbor.
struct PartialAveraging : WeightsPublished {
  using Arithmetic = PartialAveraging;

  AwcOptions options;
  double step = 1;          ///< of this combination
  double largest_rate = 0;  ///< of the steps so far

  RuleTraits traits() const;

  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull);
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T a = static_cast<T>(step);
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += a * block.pull[0][e];
  }

  std::vector<TensorView> numbers() {
    return {view_of("awc.largest_rate", std::span(&largest_rate, 1))};
  }
};

}  // namespace fast::algorithm
