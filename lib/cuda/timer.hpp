// How long work takes on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace fast::cuda {

/// Enqueues work on a stream.
using TimedWork = std::function<void(void* workspace, void* stream)>;

/// The least of some runs on the current device, after one that does not count; nothing when the
/// work throws or wants more than 1 GiB of workspace.
std::optional<double> time_ms(std::size_t workspace_bytes, const TimedWork& work);

}  // namespace fast::cuda
