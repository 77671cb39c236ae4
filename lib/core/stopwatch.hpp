// Where a worker's time goes.
#pragma once

#include <fast/core/deadline.hpp>

namespace fast {

/// Adds the time until its end to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += Seconds(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace fast
