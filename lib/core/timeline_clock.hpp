// The clock of timelines.
#pragma once

#include <fast/core/deadline.hpp>

#include <chrono>

namespace fast {

/// From the clock of events to time since 1970. Processes of one host agree within about a
/// microsecond: of several pairs of readings, the closest pair is taken.
class TimelineClock {
 public:
  /// The one of this process.
  static const TimelineClock& of_process();

  std::chrono::nanoseconds at(Clock::time_point time) const {
    return wall_ + std::chrono::duration_cast<std::chrono::nanoseconds>(time - began_);
  }

 private:
  TimelineClock();

  static constexpr int readings = 100;
  Clock::time_point began_;
  std::chrono::nanoseconds wall_{};
};

}  // namespace fast
