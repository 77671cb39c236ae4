// The choice among ways to the same result by the time they take.
#pragma once

#include <cstddef>
#include <optional>

namespace fast::cuda {

/// How many ways are tried where the fastest is asked for.
inline constexpr std::size_t most_tuned = 8;

/// The index of least time among `count` (one at least), the first of equals; where measure(i)
/// gives nothing the way failed and is not chosen. 0 when all failed; and of one, which is not
/// measured.
template <class Measure>
std::size_t fastest(std::size_t count, const Measure& measure) {
  if (count == 1) return 0;
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
