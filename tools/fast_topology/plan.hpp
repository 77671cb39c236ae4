// fast-topology plan: which topology, staleness and codec suit a cluster.
#pragma once

#include <fast/mpi/communicator.hpp>
#include <functional>

#include "cli/command.hpp"

namespace fast_topology {

/// The subcommand, and what it does if it is chosen: it reads or measures the cluster. `world`: the
/// ranks that measure, null without --measure.
struct PlanCommand {
  const tools::Command& command;
  std::function<void(const fast::mpi::Communicator* world)> run;
};

PlanCommand add_plan(tools::Command& program);

}  // namespace fast_topology
