// A limit on the bytes per second.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fast/core/deadline.hpp>

namespace fast::exchange {

/// A token bucket: open while the bytes spent are within the rate. One part may exceed it. Credit
/// of unused time is limited to 10 ms.
class Throttle {
 public:
  Throttle() = default;
  explicit Throttle(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  bool open() { return bytes_per_s_ <= 0 || refill() >= 0; }
  void spend(std::size_t bytes) { credit_ -= static_cast<double>(bytes); }

 private:
  double refill() {
    const auto now = Clock::now();
    credit_ += bytes_per_s_ * Seconds(now - last_).count();
    credit_ = std::min(credit_, bytes_per_s_ * 0.01);
    last_ = now;
    return credit_;
  }

  double bytes_per_s_ = 0;  ///< 0: no limit
  double credit_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace fast::exchange
