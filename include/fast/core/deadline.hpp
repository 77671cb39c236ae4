// Points in time by which a wait must have ended.
#pragma once

#include <chrono>

namespace fast {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Counts from its construction. A non-positive limit has expired at once.
class Deadline {
 public:
  explicit Deadline(Seconds limit) : start_(Clock::now()), limit_(limit) {}
  double elapsed_s() const { return Seconds(Clock::now() - start_).count(); }
  double limit_s() const { return limit_.count(); }
  double remaining_s() const { return limit_s() - elapsed_s(); }
  bool expired() const { return remaining_s() <= 0; }

 private:
  Clock::time_point start_;
  Seconds limit_;
};

}  // namespace fast
