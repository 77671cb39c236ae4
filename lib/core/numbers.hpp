// Small arithmetic: conversions that saturate, equal parts, medians.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace fast {

// Conversions, sums and products that keep to the range of an integer. Options are doubles,
// durations and counts of any size: "never" may be the largest of them.

/// The value without its fraction. A value beyond the range becomes the nearest end of the range,
/// NaN becomes 0.
template <std::integral Whole>
constexpr Whole saturate(double value) {
  using Range = std::numeric_limits<Whole>;
  if (value != value) return 0;
  // As a double, the largest integer of 64 bits is one more: it is compared with >=.
  if (value >= static_cast<double>(Range::max())) return Range::max();
  if (value <= static_cast<double>(Range::min())) return Range::min();
  return static_cast<Whole>(value);
}

template <std::integral Whole>
constexpr Whole saturating_sum(Whole a, Whole b) {
  Whole sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<Whole>::min() : std::numeric_limits<Whole>::max();
}

template <std::integral Whole>
constexpr Whole saturating_product(Whole a, Whole b) {
  Whole product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? std::numeric_limits<Whole>::min() : std::numeric_limits<Whole>::max();
}

/// The time in whole units of `To`. std::chrono::duration_cast is undefined beyond its range.
template <class To>
constexpr To saturate_time(std::chrono::duration<double> time) {
  using Ratio = typename To::period;
  const double units =
      time.count() * static_cast<double>(Ratio::den) / static_cast<double>(Ratio::num);
  return To(saturate<typename To::rep>(units));
}

/// Sleeps for that time, or for 30 years if it is longer: the standard library adds the time to the
/// present one.
inline void sleep_saturated(std::chrono::duration<double> time) {
  constexpr std::chrono::duration<double> longest{1e9};
  std::this_thread::sleep_for(saturate_time<std::chrono::nanoseconds>(std::min(time, longest)));
}

// A vector in consecutive parts of nearly equal size.

/// The first element of `part`, of a vector of `elements` in `parts` parts. Part `parts` would
/// begin behind the last element.
constexpr std::uint64_t part_begin(std::uint64_t elements, std::uint64_t parts,
                                   std::uint64_t part) {
  return part * elements / parts;
}

// Figures of samples that may have outliers.

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
