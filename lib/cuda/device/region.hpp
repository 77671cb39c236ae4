// What an exchange uses of a device: memory that the workers of a host read, work of a stream.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/cuda/stream.hpp>
#include <fast/exchange/group.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "exchange/device/staged.hpp"

namespace fast::cuda {

/// Memory that other workers map is freed after all of them have left or died, or not at all.
class Departures {
 public:
  /// Collective.
  Departures(const Group& group, const Deadline& deadline)
      : group_(group),
        rank_(group.rank()),
        hosts_(group.hosts()),
        flags_(group.allocate(sizeof(std::atomic<int>), deadline)) {}

  /// Marks that this worker has left. True if all workers of its host have left by then, or leave
  /// before the limit. One that the launcher reports dead has left: its mappings ended with it.
  bool leave(Seconds limit) const {
    gone(rank_).store(1, std::memory_order_release);
    const Deadline deadline(limit);
    while (!all_are_gone()) {
      if (deadline.expired()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  std::atomic<int>& gone(int worker) const {
    return *reinterpret_cast<std::atomic<int>*>(flags_.parts[static_cast<std::size_t>(worker)]);
  }
  bool all_are_gone() const {
    const std::vector<int> died = group_.died();
    for (int worker = 0; worker < static_cast<int>(hosts_.size()); ++worker) {
      const bool here =
          hosts_[static_cast<std::size_t>(worker)] == hosts_[static_cast<std::size_t>(rank_)];
      const bool is_gone = gone(worker).load(std::memory_order_acquire) != 0;
      if (here && !is_gone && std::ranges::count(died, worker) == 0) return false;
    }
    return true;
  }

  Group group_;
  int rank_;
  std::vector<int> hosts_;
  Region flags_;
};

}  // namespace fast::cuda

// Device memory that the workers of one host read directly.
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
/// for the other workers of the host that live, at most two seconds. After that the memory is freed
/// at the end of the process.
DeviceRegion share_memory(const Group& group, std::size_t bytes_per_worker, int device,
                          const Deadline& deadline);

// Work of a device for exchanges of payloads in its memory (exchange/device/staged.hpp).

using fast::DeviceWork;

/// The work of one stream, which must outlive it. `deadline` is that of settle(). beside() uses a
/// new stream.
std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline = Seconds(300));

}  // namespace fast::cuda
