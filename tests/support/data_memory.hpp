// The private memory that a process may write: what the system counts with vm.overcommit_memory=2,
// and what RLIMIT_DATA limits.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace fast::testing {

inline std::size_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kib = 0;
    if (word == "VmData:" && status >> kib) return kib << 10;
  }
  return 0;
}

/// Lets this process have so much more of it, until the end of the scope.
class MoreDataAtMost {
 public:
  explicit MoreDataAtMost(std::size_t bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit limit{data_bytes() + bytes, before_.rlim_max};
    setrlimit(RLIMIT_DATA, &limit);
  }
  MoreDataAtMost(const MoreDataAtMost&) = delete;
  MoreDataAtMost& operator=(const MoreDataAtMost&) = delete;
  ~MoreDataAtMost() { setrlimit(RLIMIT_DATA, &before_); }

  /// Whether the system refuses to make that much memory writable: not every one does.
  static bool refuses(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return true;
    const bool refused = mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0;
    munmap(memory, bytes);
    return refused;
  }

 private:
  rlimit before_{};
};

}  // namespace fast::testing
