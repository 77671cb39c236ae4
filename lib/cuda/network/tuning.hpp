// The choice of the fastest of several candidates.
#pragma once

#include <cstddef>
#include <optional>

namespace fast::cuda {

/// The number of candidates to measure.
inline constexpr std::size_t most_tuned = 8;

/// The index of the least time among `count` >= 1 candidates, the first of equals.
/// measure(i, least) gets the least time so far; a candidate without a value has failed or is
/// slower. 0 if all have failed, or if there is only one, which is not measured.
template <class Measure>
std::size_t fastest(std::size_t count, const Measure& measure) {
  if (count == 1) return 0;
  std::optional<double> least;
  std::size_t best = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<double> time = measure(i, least);
    if (!time || (least && !(*time < *least))) continue;
    least = time;
    best = i;
  }
  return best;
}

}  // namespace fast::cuda
