// Memory that other workers map is freed after all of them have left, or not at all.
#pragma once

#include <atomic>
#include <fast/exchange/group.hpp>
#include <thread>

namespace fast::cuda {

class Departures {
 public:
  /// Collective.
  Departures(const Group& group, const Deadline& deadline)
      : rank_(group.rank()),
        hosts_(group.hosts()),
        flags_(group.allocate(sizeof(std::atomic<int>), deadline)) {}

  /// Marks that this worker has left. True if all workers of its host have left by then, or leave
  /// before the limit.
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
    for (int worker = 0; worker < static_cast<int>(hosts_.size()); ++worker) {
      const bool here =
          hosts_[static_cast<std::size_t>(worker)] == hosts_[static_cast<std::size_t>(rank_)];
      if (here && gone(worker).load(std::memory_order_acquire) == 0) return false;
    }
    return true;
  }

  int rank_;
  std::vector<int> hosts_;
  Region flags_;
};

}  // namespace fast::cuda
