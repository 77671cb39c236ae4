// Device memory that the workers of one host read directly.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/staged.hpp>

#include <cstddef>

namespace fast {
class Group;
}

namespace fast::cuda {

using fast::DeviceRegion;

/// Collective. Zeroed memory of each worker's own device: its own part, and those of the others as
/// CUDA IPC maps them (or plainly, for threads of one process), on the same card or on one that the
/// driver lets this one read. Each mapping counts only after a kernel here has read through it what
/// its owner wrote. Workers of other hosts cannot be mapped. Throws Error(resource), on every
/// worker alike, when any has no GPU or not enough memory. CUDA forbids to free what others still
/// map: the end of the last region waits for those of the host's other workers, at most two
/// seconds, and else leaves the part to the end of the process.
DeviceRegion share_memory(const Group& group, std::size_t bytes_per_worker, int device,
                          const Deadline& deadline);

}  // namespace fast::cuda
