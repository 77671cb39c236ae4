// The options of fast-sim.
#pragma once

#include <fast/simgrid/run.hpp>
#include <fast/simulation/workload.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"

namespace fast_sim {

struct Options {
  std::string topology = "torus2d";
  int workers = 16;
  std::string exchange = "neighbors", algorithm = "awc", staleness = "0";
  double payload_bytes = 4e6;
  std::int64_t rounds = 100;
  double step_s = 0.1, jitter = 0;
  std::vector<std::string> slow;
  std::string measured;
  double failures_per_hour = 0, absent_s = 60, suspect_after_s = 5;
  std::uint64_t seed = 1;
  std::string model = "simgrid";
  fast::simgrid::Platform platform;
  int workers_per_host = 1;
  double memory_bandwidth = 10e9;
  int cores = 0;
  std::size_t links = 10;
  bool json = false;
};

void add_options(tools::Command& command, Options& options);
/// Throws Error(argument) for an option that was given and has no effect.
void check_effects(const tools::Command& command, const Options& options);
/// Throws fast::Error for what cannot be simulated.
fast::simulation::Workload workload_of(const Options& options);

/// The network of fast-sim: SimGrid's, where it was found.
struct Result {
  fast::simulation::RoundFigures figures;
  std::vector<std::pair<std::string, double>> link_bytes;  ///< most used first
};

/// Throws fast::Error (argument) where the program was built without SimGrid.
Result run_on_network(const fast::simulation::Workload& load, const Options& options);

}  // namespace fast_sim
