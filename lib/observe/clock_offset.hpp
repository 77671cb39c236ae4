// How much the clocks of hosts differ, so that their timelines can be laid side by side.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/group.hpp>

#include <chrono>
#include <functional>

#include "core/timeline_clock.hpp"

namespace fast::observe {

/// Reads a clock.
using WallClock = std::function<std::chrono::nanoseconds()>;

/// The clock of timelines: the wall clock when the process first asked, and a clock that never
/// jumps from then on. Time since 1970.
std::chrono::nanoseconds timeline_now();

/// Collective. Returns how far this worker's clock is ahead of worker 0's, from 32 exchanges of
/// readings: half of the difference between the shortest ways there and back. The error is less
/// than half of the shortest time there and back. Throws as Group::all_gather().
Seconds clock_offset(const Group& group, const Deadline& deadline,
                     const WallClock& now = timeline_now);

/// The scalar by which a timeline learns the offset, in seconds. Tell it at the beginning and at
/// the end: `fast-trace` corrects the times between by the line through both.
inline constexpr const char* clock_offset_name = "clock/offset_s";

}  // namespace fast::observe
