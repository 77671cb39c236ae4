// Which topology a plan of the measured cluster advises, beside the one that follows from its
// hosts.
#pragma once

#include <fast/simulation/plan.hpp>

#include <string>
#include <vector>

namespace fast_train {

struct PlannedTopology {
  std::string name;
  std::string reason;  ///< "predicted 40 ms a round, 120 ms to agree; no other one is 10 % faster"
};

/// Topologies that are compared with the usual one. None of them lets a worker read all others: the
/// planner does not know what many reads cost the processor.
std::vector<std::string> compared_topologies();

/// The usual topology, unless the plan predicts that another one of `names` is at least 10 %
/// faster:
/// - its rounds take at most 90 % of the time, and training to the same accuracy does, too; or
/// - its workers agree in at most 90 % of the time, and neither its rounds nor training to the same
///   accuracy take longer (1 % counts as equal).
/// Of several, the one that reaches the accuracy first; of those that are equal in that, the one
/// whose workers agree first; then the first one of `names`.
PlannedTopology advised(const fast::simulation::Plan& plan, const std::string& usual,
                        const std::vector<std::string>& names);

/// The same, by a plan of the cluster. `others` are names that fit the rule. `options` has the
/// rule, one staleness and one codec of the run. Pure. Throws Error as plan() does.
PlannedTopology planned_topology(const fast::simulation::Cluster& cluster, const std::string& usual,
                                 const std::vector<std::string>& others,
                                 fast::simulation::PlanOptions options);

}  // namespace fast_train
