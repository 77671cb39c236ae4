// The choice of the fastest of several candidates.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace fast::cuda {

// Measures the time of work on a device.

/// Enqueues work on a stream.
using TimedWork = std::function<void(void* workspace, void* stream)>;

/// The time of the work on the current device. It is the minimum over some runs. Each run enqueues
/// short work several times between two events, so that the host's part of all but the first runs
/// beside the device's. The first run does not count. No value if the work throws, if it needs more
/// than 1 GiB of workspace, or if it clearly takes longer than `rival_ms`: then it has run once or
/// twice only. Some ways to compute a convolution take a hundred times as long as the best.
std::optional<double> time_ms(std::size_t workspace_bytes, const TimedWork& work,
                              std::optional<double> rival_ms);

/// The number of candidates to measure.
inline constexpr std::size_t most_tuned = 4;

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
