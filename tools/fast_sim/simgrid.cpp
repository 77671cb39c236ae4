#include <fast/simgrid/run.hpp>

#include "fast_sim/options.hpp"

namespace fast_sim {

Result run_on_network(const fast::simulation::Workload& load, const Options& options) {
  const fast::simgrid::SimulatedRun run = fast::simgrid::run(
      load, options.platform, {options.workers_per_host, options.memory_bandwidth, options.cores});
  Result result;
  result.figures = run.figures;
  for (const auto& use : run.links) result.link_bytes.emplace_back(use.link, use.size_bytes);
  return result;
}

}  // namespace fast_sim
