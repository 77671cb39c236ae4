// How long work takes on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace fast::cuda {

/// Enqueues work on a stream.
using TimedWork = std::function<void(void* workspace, void* stream)>;

/// The time of the work enqueued once, on the current device: the least of some runs, each of
/// several enqueued at once between two marks, so that the host's part of all but the first passes
/// beside the device's; after one that does not count. Nothing when the work throws or wants more
/// than 1 GiB of workspace.
std::optional<double> time_ms(std::size_t workspace_bytes, const TimedWork& work);

}  // namespace fast::cuda
