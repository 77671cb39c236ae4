// What the workers of a run agree on before they open their links.
#pragma once

#include <fast/mixing/weights.hpp>
#include <fast/worker/worker.hpp>

#include <vector>

#include "worker/start/requirements.hpp"

namespace fast::worker {

// The topology and the mixing weights of a run, for any number of workers.

/// A schedule, and the weights with which a rule runs on it.
struct ResolvedTopology {
  Schedule schedule;
  FittingWeights weights;

  /// Throws Error(topology) if the weight rule has no row for that worker in the first round.
  void check_row(int worker) const {
    mixing_row(schedule.at(0), worker, weights.rule, weights.lazy);
  }
};

/// Throws Error(topology) if the schedule is in shards, which such a worker does not exchange.
void check_shards(const Schedule& schedule, const WorkerOptions& options);

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
    check_shards(schedule, options);
    FittingWeights fitting =
        fitting_weights(schedule, options.algorithm.traits(), weights, lazy, options.staleness);
    return {std::move(schedule), std::move(fitting)};
  }
};

struct StartupConfig {
  WorkerOptions options;  ///< with the mixing weights that fit
  TopologyConfig wiring;
  ParameterLayout layout;
  Schedule schedule;
  /// Parameters that neither take part nor are listed as frozen.
  std::vector<TensorView> unexchanged;
};

/// Collective over all ranks, spares among them. Throws on every rank: as Worker's constructor.
/// Worker 0 logs what the user should know of the weights.
StartupConfig agree_on_start(const Group& group, const TopologyRule& rule,
                             std::vector<TensorView> parameters, WorkerOptions options);

}  // namespace fast::worker
