// Conversions, sums and products that keep to the range of an integer. Options are doubles,
// durations and counts of any size: "never" may be the largest of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <limits>
#include <thread>

namespace fast {

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

}  // namespace fast
