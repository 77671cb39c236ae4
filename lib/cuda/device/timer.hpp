// Measures the time of work on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace fast::cuda {

/// Enqueues work on a stream.
using TimedWork = std::function<void(void* workspace, void* stream)>;

/// The time of the work on the current device. It is the minimum over some runs. Each run enqueues
/// the work several times between two events, so that the host's part of all but the first runs
/// beside the device's. The first run does not count. No value if the work throws, if it needs more
/// than 1 GiB of workspace, or if it clearly takes longer than `rival_ms`: then it has run twice
/// only. Some ways to compute a convolution take a hundred times as long as the best.
std::optional<double> time_ms(std::size_t workspace_bytes, const TimedWork& work,
                              std::optional<double> rival_ms);

}  // namespace fast::cuda
