// Steps that only take time: constant, or lognormal around their mean, and longer on one worker.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/random.hpp>

namespace fast::bench {

struct PaceOptions {
  double step_ms = 40;  ///< mean
  double jitter = 0;    ///< standard deviation ÷ mean
  double slow = 1;      ///< how many times as long the slow worker's steps are
  int slow_rank = -1;   ///< the last rank if negative
  std::uint64_t seed = 1;
};

/// Of one worker: the durations follow from seed, rank and step alone.
class Pace {
 public:
  Pace(const PaceOptions& options, int rank, int ranks);
  /// Of the next step.
  Seconds next();
  /// Sleeps for next(), measured from the call.
  void step();

 private:
  PaceOptions options_;
  bool is_slow_;
  Rng rng_;
};

}  // namespace fast::bench
