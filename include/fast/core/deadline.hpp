// Points in time by which a wait must have ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace fast {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Counts the time that its process runs, from its construction on. Between two looks it counts at
/// most `longest_step`, so that a process that was suspended has lost nothing. Whoever waits must
/// look more often than that. A non-positive limit has expired at once. Used by one thread.
class Deadline {
 public:
  static constexpr Seconds longest_step{0.25};

  explicit Deadline(Seconds limit) : looked_(Clock::now()), limit_(limit) {}
  double elapsed_s() const {
    const auto now = Clock::now();
    elapsed_ += std::min(Seconds(now - std::exchange(looked_, now)), longest_step);
    return elapsed_.count();
  }
  double limit_s() const { return limit_.count(); }
  bool expired() const { return elapsed_s() >= limit_s(); }

 private:
  mutable Clock::time_point looked_;
  mutable Seconds elapsed_{0};
  Seconds limit_;
};

}  // namespace fast
