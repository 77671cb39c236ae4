// --topology auto.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/simulation/plan.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fast_train/options.hpp"
#include "measure/measured_cluster.hpp"
#include "worker/start/requirements.hpp"

namespace fast_train {

/// Which topology a plan of the measured cluster advises, beside the one that follows from its
/// hosts.
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

/// Collective. Replaces the topology "auto" by the name that follows from hosts, rule and
/// staleness, the same on all ranks. Empty for other topologies, which stay.
std::optional<fast::ChosenTopology> choose_by_hosts(const fast::Group& ranks, Options& o);

/// What a run is measured by.
struct Trial {
  std::vector<int> hosts;  ///< of each worker: hosts_of_workers()
  double payload_bytes = 0;
  /// Steps of the model, in about so many seconds.
  std::function<tools::StepTimes(fast::Seconds budget)> steps;
};

std::vector<int> hosts_of_workers(const fast::Group& ranks, const Options& o);

/// Collective, with the result of choose_by_hosts(). On several hosts, measures links and steps for
/// about --measure-s seconds, and takes what planned_topology() advises. Rank 0 plans, so that all
/// ranks have the same topology. Prints the choice and its reason once, also why nothing was
/// measured. Throws Error(deadline) on every worker when a host does not answer.
void choose_by_links(const fast::mpi::Communicator& world, const fast::Group& ranks,
                     const std::optional<fast::ChosenTopology>& usual, const Trial& trial,
                     Options& o);

}  // namespace fast_train
