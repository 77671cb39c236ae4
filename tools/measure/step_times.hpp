// How long training steps take, by measurement.
#pragma once

#include <fast/core/deadline.hpp>
#include <functional>

namespace tools {

struct StepTimes {
  double mean_s = 0;
  double jitter = 0;  ///< standard deviation of the logarithm, by the median deviation
};

/// Calls `step` once without counting it, then until the budget is spent: at least once, at most
/// 200 times. If the first call takes the whole budget, it counts and is the only one.
StepTimes time_steps(const std::function<void()>& step, fast::Seconds budget);

}  // namespace tools
