#include "core/timeline_clock.hpp"

namespace fast {

TimelineClock::TimelineClock() {
  Clock::duration closest = Clock::duration::max();
  for (int reading = 0; reading < readings; ++reading) {
    const auto before = Clock::now();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto apart = Clock::now() - before;
    if (apart >= closest) continue;
    closest = apart;
    began_ = before + apart / 2;
    wall_ = wall;
  }
}

const TimelineClock& TimelineClock::of_process() {
  static const TimelineClock clock;
  return clock;
}

}  // namespace fast
