// What a run is, for its first line of metrics.
#pragma once

#include <fast/train/metrics.hpp>

#include <vector>

#include "train/run/replica.hpp"
#include "train/run/run_plan.hpp"

namespace fast::train {

/// After look_over(). `step`: rounds that the run had made when this program began.
std::vector<Metric> start_facts(const RunPlan& plan, const Replica& replica, std::int64_t step);

/// The workers that a worker reads in the first period of the schedule, sorted; of a schedule that
/// never repeats, in its first round.
std::vector<int> neighbors_of(const Schedule& schedule, int worker);

}  // namespace fast::train
