// Which workers were there when this worker last met them.
#pragma once

#include <cstddef>
#include <vector>

namespace fast::worker {

class Presence {
 public:
  /// At first all workers are taken to be there.
  explicit Presence(int workers) : absent_(static_cast<std::size_t>(workers), false) {}

  bool is_absent(int worker) const { return absent_[static_cast<std::size_t>(worker)]; }
  /// True when the worker has left or come back since it was noted last.
  bool note(int worker, bool absent) {
    const auto noted = absent_.begin() + worker;
    const bool changed = *noted != absent;
    *noted = absent;
    return changed;
  }

 private:
  std::vector<bool> absent_;
};

}  // namespace fast::worker
