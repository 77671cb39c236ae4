// The topology and the mixing weights of a run, for any number of workers.
#pragma once

#include <fast/mixing/weights.hpp>
#include <fast/worker/requirements.hpp>
#include <fast/worker/worker.hpp>

namespace fast::worker {

/// A schedule, and the weights with which a rule runs on it.
struct ResolvedTopology {
  Schedule schedule;
  FittingWeights weights;

  /// Throws Error(topology) if the weight rule has no row for that worker in the first round.
  void check_row(int worker) const {
    mixing_row(schedule.at(0), worker, weights.rule, weights.lazy);
  }
};

/// What the program has asked for. Each topology of the run gets its weights from here, whatever
/// weights the topology before has got.
struct TopologyConfig {
  TopologyRule rule;
  WeightRule weights = WeightRule::automatic;  ///< as the program has asked
  bool lazy = false;

  /// Throws Error(topology) when there is no such topology of that many workers, or the algorithm
  /// does not run on it.
  ResolvedTopology of(int workers, const WorkerOptions& options) const {
    Schedule schedule = rule.make(workers);
    FittingWeights fitting =
        fitting_weights(schedule, options.algorithm.traits(), weights, lazy, options.staleness);
    return {std::move(schedule), std::move(fitting)};
  }
};

}  // namespace fast::worker
