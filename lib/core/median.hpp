// Figures of samples that may have outliers.
#pragma once

#include <algorithm>
#include <vector>

namespace fast {

/// Of an even number of values, the mean of the two in the middle; 0 without values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// The standard deviation of a normal distribution whose median absolute deviation is 1.
inline constexpr double sigma_of_median_deviation = 1.4826;

}  // namespace fast
