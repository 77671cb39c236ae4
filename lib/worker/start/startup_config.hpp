// What the workers of a run agree on before they open their links.
#pragma once

#include <fast/worker/worker.hpp>
#include <vector>

#include "worker/start/topology_config.hpp"

namespace fast::worker {

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
