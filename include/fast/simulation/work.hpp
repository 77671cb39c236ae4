// How long training steps take, and when workers are absent: what a simulation is given. Component
// simulation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fast::simulation {

/// Seconds of every step, by worker and round. The same arguments give the same seconds.
struct WorkTimes {
  double seconds = 0.1;        ///< mean of a step; above 0
  double jitter = 0;           ///< standard deviation of the logarithm (lognormal); 0: constant
  std::map<int, double> slow;  ///< worker: factor of its steps
  /// Measured seconds of steps, a list a worker; worker i draws from list i mod size. Not empty:
  /// they stand in place of `seconds` and `jitter`.
  std::vector<std::vector<double>> measured;
  std::uint64_t seed = 1;

  double of(int worker, std::int64_t round) const;
};

/// A factor with mean 1 whose logarithm has that standard deviation, a pure function of the rest.
double lognormal_factor(double sigma, std::uint64_t seed, std::uint64_t a, std::uint64_t b);

/// Returns the seconds of steps from the metrics that fast-train wrote (--out DIRECTORY). Each
/// worker has the mean step of each interval, or of each epoch where there are no intervals. Throws
/// Error(data) when there are none.
std::vector<std::vector<double>> measured_steps(const std::string& directory);

/// Workers that fail at a rate and return, in the round of their furthest neighbor.
struct Failures {
  double per_worker_hour = 0;  ///< failures of a worker in an hour of its steps
  double absent_s = 60;        ///< from a failure to the return
  double suspect_after_s = 5;  ///< neighbors leave a worker out so long after its failure
  std::uint64_t seed = 1;

  /// What part of the step passes before the worker fails in it; negative: it does not fail.
  double fails_after(int worker, std::int64_t round, double step_s) const;
};

}  // namespace fast::simulation
