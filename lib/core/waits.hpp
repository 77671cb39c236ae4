// What waits for other ranks have in common: the loop that looks for news, and which of the ranks
// that have lost others reports that.
#pragma once

#include <fast/core/deadline.hpp>

#include <chrono>
#include <limits>
#include <thread>

#include "core/contains.hpp"

namespace fast {

inline constexpr Seconds without_limit{std::numeric_limits<double>::infinity()};

/// Calls is_over() with pauses until it is true. False if the deadline has passed before. Throws
/// what a WaitCheck of this thread throws.
template <class IsOver>
bool look_until(const IsOver& is_over, const Deadline& deadline, std::chrono::microseconds pause) {
  while (!is_over()) {
    if (deadline.expired()) return false;
    check_wait();
    std::this_thread::sleep_for(pause);
  }
  return true;
}

/// The number of ranks below `rank` that are not among those that are gone. All survivors of a loss
/// end with the same error, and one of them reports it: the lowest one, for which this is 0.
template <class Ranks>
int living_below(int rank, const Ranks& gone) {
  int living = 0;
  for (int below = 0; below < rank; ++below) living += contains(gone, below) ? 0 : 1;
  return living;
}

}  // namespace fast
