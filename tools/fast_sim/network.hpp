// The network of fast-sim: SimGrid's, where it was found.
#pragma once

#include <fast/simulation/workload.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fast_sim/options.hpp"

namespace fast_sim {

struct Result {
  fast::simulation::RoundFigures figures;
  std::vector<std::pair<std::string, double>> link_bytes;  ///< most used first
};

/// Throws fast::Error (argument) where the program was built without SimGrid.
Result run_on_network(const fast::simulation::Workload& load, const Options& options);

}  // namespace fast_sim
