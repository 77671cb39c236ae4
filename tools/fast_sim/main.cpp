// fast-sim: training runs without weights, on simulated networks.
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/simulation/recurrence.hpp>

#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "fast_sim/network.hpp"
#include "fast_sim/options.hpp"
#include "fast_sim/output.hpp"

using namespace fast;

namespace {

// Each message has its path for itself: two links of a star.
fast_sim::Result recur(const simulation::Workload& load, const fast_sim::Options& options) {
  const auto transfer = [&](std::int64_t, int from, int to, double size_bytes) {
    if (from / options.workers_per_host == to / options.workers_per_host) {
      return size_bytes / options.memory_bandwidth;
    }
    return 2 * options.platform.latency_s + size_bytes / options.platform.bandwidth;
  };
  return {simulation::recur(load, transfer), {}};
}

int run(int argc, char** argv) {
  tools::Command command("fast-sim", "Simulates training runs on networks. Weights are left out.",
                         "fast-sim -n 16 --topology torus2d --rounds 100");
  fast_sim::Options options;
  fast_sim::add_options(command, options);
  if (const auto status = tools::parse(command, argc, argv)) return *status;
  const simulation::Workload load = fast_sim::workload_of(options);
  fast_sim::check_effects(command, options);
  const bool recurs = options.model == "recurrence";
  print_result(recurs ? recur(load, options) : run_on_network(load, options), load, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-sim", [&] { return run(argc, argv); });
}
