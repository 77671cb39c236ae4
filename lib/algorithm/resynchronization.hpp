// For rules that send differences to copies that their neighbors hold: all workers begin again with
// new copies after a worker has left or come back.
#pragma once

#include <algorithm>
#include <fast/algorithm/algorithm.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// A worker that reads a message of a newer epoch begins that epoch and does not use the message.
/// So the first messages of an epoch are empty, and nothing is lost. Workers begin an epoch one
/// after another: on directed edges, N - 1 exchanges may lie between the first and the last. A
/// worker sends differences when all have begun, N exchanges after it began. Before that, its own
/// difference would be lost: a worker subtracts it once for each neighbor of its epoch, and not for
/// neighbors of an older one. After N more exchanges, all have sent. Until then, differences change
/// the copies, not the weights.
class Resynchronization {
 public:
  FAST_HOST_DEVICE void start(const RoundInfo& info) {
    numbers_[0] = info.restarts ? 1 : 0;
    numbers_[1] = 0;
  }
  FAST_HOST_DEVICE bool sends() const { return numbers_[0] == 0; }
  void begin_combine(const RoundInfo& info) {
    auto& [silent, left] = numbers_;
    if (silent != 0 && left == 0) left = 2 * info.workers + 1;
    uses_ = left <= 0;
    left = std::max(0.0, left - 1);
    if (left <= info.workers + 1) silent = 0;
  }
  /// In this combination.
  FAST_HOST_DEVICE bool uses_differences() const { return uses_; }

  TensorView view() { return view_of("resynchronization", std::span<double>(numbers_)); }

 private:
  double numbers_[2] = {};  ///< whether messages are empty; exchanges until uses_
  bool uses_ = true;
};

}  // namespace fast::algorithm
