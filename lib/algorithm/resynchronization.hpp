// For rules that send differences to copies that their neighbors hold: all workers begin again with
// new copies after a worker has left or come back.
#pragma once

#include <algorithm>
#include <array>
#include <fast/algorithm/algorithm.hpp>

namespace fast::algorithm {

/// A worker that reads a message of a newer epoch begins that epoch and does not use the message.
/// So the first message of an epoch is empty, and nothing is lost. Workers begin an epoch one after
/// another. Until all have begun and have sent, differences change the copies, not the weights.
class Resynchronization {
 public:
  void start(const RoundInfo& info) { numbers_ = {info.restarts ? 1.0 : 0.0, 0}; }
  bool sends() const { return numbers_[0] == 0; }
  void begin_combine(const RoundInfo& info) {
    auto& [silent, left] = numbers_;
    if (silent != 0) left = info.workers + 1;
    silent = 0;
    uses_ = left <= 0;
    left = std::max(0.0, left - 1);
  }
  /// In this combination.
  bool uses_differences() const { return uses_; }

  TensorView view() { return view_of("resynchronization", std::span<double>(numbers_)); }

 private:
  std::array<double, 2> numbers_{};  ///< whether the next message is empty; exchanges until uses_
  bool uses_ = true;
};

}  // namespace fast::algorithm
