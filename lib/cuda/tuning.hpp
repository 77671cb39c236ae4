// The choice among ways to the same result by the time they take.
#pragma once

#include <cstddef>
#include <optional>

namespace fast::cuda {

/// The index of least time among `count` (one at least), the first of equals; where measure(i)
/// gives nothing the way failed and is not chosen. 0 when all failed.
template <class Measure>
std::size_t fastest(std::size_t count, const Measure& measure) {
  std::optional<double> least;
  std::size_t best = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<double> time = measure(i);
    if (!time || (least && !(*time < *least))) continue;
    least = time;
    best = i;
  }
  return best;
}

}  // namespace fast::cuda
