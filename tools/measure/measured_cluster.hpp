// The cluster on which ranks run, by measurement.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/group.hpp>
#include <fast/simulation/plan.hpp>

#include <functional>
#include <string>
#include <vector>

#include "exchange/links/measured_links.hpp"

namespace tools {

/// How long training steps take, by measurement.
struct StepTimes {
  double mean_s = 0;
  double jitter = 0;  ///< standard deviation of the logarithm, by the median deviation
};

/// Calls `step` once without counting it, then until the budget is spent: at least once, at most
/// 200 times. If the first call takes the whole budget, it counts and is the only one.
StepTimes time_steps(const std::function<void()>& step, fast::Seconds budget);

/// What is measured, and for how long.
struct ClusterMeasurement {
  std::vector<int> hosts;            ///< by rank, as Group::hosts()
  double payload_bytes = 0;          ///< of the model in f32
  std::function<StepTimes()> steps;  ///< called on all ranks at the same time, as in a run
  fast::Seconds longest_steps{3600};
  fast::LinkMeasureOptions links{};
};

struct MeasuredCluster {
  fast::simulation::Cluster cluster;
  fast::MeasuredLinks links;
};

/// Collective. The same cluster on every rank. `group` has the ranks of `ranks`, and the hosts have
/// as many ranks each. Throws the same Error on every rank: that of the steps, or of
/// measure_links().
MeasuredCluster measure_cluster(const fast::mpi::Communicator& ranks, const fast::Group& group,
                                const ClusterMeasurement& asked);

/// Figures in one line, and a line for the slowest pair of hosts if it has less than half of the
/// usual bandwidth.
std::string text_of(const MeasuredCluster& measured);

/// "12.5 MB/s".
std::string rate_text(double bytes_per_s);

}  // namespace tools
