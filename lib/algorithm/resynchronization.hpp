// For rules that send differences to what their neighbors hold, when all begin these anew.
#pragma once

#include <algorithm>
#include <array>
#include <fast/algorithm/algorithm.hpp>

namespace fast::algorithm {

/// Workers hear one after another that a new epoch has begun, and leave out what they read of it in
/// that round. So the first message of an epoch is empty: nothing is lost with it. And until all
/// workers have heard and have sent, differences are gathered, but not used.
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
  std::array<double, 2> numbers_{};  ///< the next message is empty; exchanges before uses_
  bool uses_ = true;
};

}  // namespace fast::algorithm
