// Training runs on a simulated network, by SimGrid. Component simgrid.
#pragma once

#include <fast/simgrid/platform.hpp>
#include <fast/simulation/workload.hpp>

#include <string>
#include <vector>

namespace fast::simgrid {

struct LinkUse {
  std::string link;
  double size_bytes = 0;  ///< of all messages over it
};

struct SimulatedRun {
  simulation::RoundFigures figures;
  std::vector<LinkUse> links;  ///< most used first
};

struct RunOptions {
  int workers_per_host = 1;        ///< worker w is on host w / workers_per_host
  double memory_bandwidth = 10e9;  ///< of messages between workers of a host, bytes per second
};

/// Simulates a run. Messages share links by max-min fairness (SimGrid's model CM02, without the
/// effects of TCP). At most one call a process, as SimGrid allows one simulation. Throws
/// Error(argument) for numbers out of range, Error(data) when the platform cannot be read.
SimulatedRun run(const simulation::Workload& workload, const Platform& platform,
                 const RunOptions& options = {});

}  // namespace fast::simgrid
