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
/// beside the device's. The first run does not count. No value if the work throws or needs more
/// than 1 GiB of workspace.
std::optional<double> time_ms(std::size_t workspace_bytes, const TimedWork& work);

}  // namespace fast::cuda
