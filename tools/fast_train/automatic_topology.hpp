// --topology auto.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/worker/choose_topology.hpp>
#include <functional>
#include <optional>

#include "fast_train/options.hpp"
#include "measure/step_times.hpp"

namespace fast_train {

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
