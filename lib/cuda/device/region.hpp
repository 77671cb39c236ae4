// Device memory that the workers of one host read directly.
#pragma once

#include <cstddef>
#include <fast/core/deadline.hpp>

#include "exchange/device/staged.hpp"

namespace fast {
class Group;
}

namespace fast::cuda {

using fast::DeviceRegion;

/// Collective. Zeroed memory on the device of each worker. A worker reads the parts of other
/// workers through CUDA IPC, or directly for threads of one process. The parts lie on the same card
/// or on one that the driver lets this card read. A mapping is used only after a kernel has read
/// through it the values that the owner wrote. Workers on other hosts cannot be mapped.
///
/// Throws Error(resource) on every worker if any worker has no GPU or not enough memory. CUDA
/// forbids freeing memory that others still map. The destructor of the last region therefore waits
/// for the other workers of the host, at most two seconds. After that the memory is freed at the
/// end of the process.
DeviceRegion share_memory(const Group& group, std::size_t bytes_per_worker, int device,
                          const Deadline& deadline);

}  // namespace fast::cuda
