// What a run is, for its first line of metrics.
#pragma once

#include <fast/train/metrics.hpp>

#include <vector>

#include "train/run/replica.hpp"
#include "train/run/run_plan.hpp"

namespace fast::train {

/// Rounds that had been made when this program began; 0: none, or the run was not resumed.
struct MadeBefore {
  std::int64_t by_run = 0;     ///< those of the checkpoint, the same for all workers
  std::int64_t by_worker = 0;  ///< those of this worker; a worker that joins has made none
};

/// After complete_overview().
std::vector<Metric> start_facts(const RunPlan& plan, const Replica& replica,
                                const MadeBefore& before);

/// The workers that a worker reads in the first period of the schedule, sorted; of a schedule that
/// never repeats, in its first round.
std::vector<int> neighbors_of(const Schedule& schedule, int worker);

}  // namespace fast::train
