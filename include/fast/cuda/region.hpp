// Device memory that the workers of one host read directly.
#pragma once

#include <fast/core/deadline.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fast {
class Group;
}

namespace fast::cuda {

struct DeviceRegion {
  int rank = 0;                      ///< of this worker
  std::vector<std::byte*> parts;     ///< by rank; null: cannot be read from here
  std::vector<std::string> why_not;  ///< by rank: one line where the part is null
  std::size_t part_bytes = 0;
  std::shared_ptr<void> owner;  ///< keeps the mappings
};

/// Collective. Zeroed memory of each worker's own device: its own part, and those of the others as
/// CUDA IPC maps them (or plainly, for threads of one process), on the same card or on one that the
/// driver lets this one read. Each mapping counts only after a kernel here has read through it what
/// its owner wrote. Workers of other hosts cannot be mapped. Throws Error(resource), on every
/// worker alike, when any has no GPU or not enough memory.
DeviceRegion share_memory(const Group& group, std::size_t bytes_per_worker, int device,
                          const Deadline& deadline);

/// Collective. Unmaps and frees. A region that goes without it (as after a failure) leaves its own
/// part to the end of the process: CUDA forbids to free what others still map.
void release(const Group& group, DeviceRegion region, const Deadline& deadline);

}  // namespace fast::cuda
