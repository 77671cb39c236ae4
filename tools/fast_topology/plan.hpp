// fast-topology plan: which topology, staleness and codec suit a cluster.
#pragma once

#include <fast/mpi/communicator.hpp>
#include <fast/simulation/plan.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "measure/measure_command.hpp"

namespace fast_topology {

/// The options of the subcommand.
class PlanCommand {
 public:
  explicit PlanCommand(tools::Command& program);
  const tools::Command& command() const { return command_; }
  /// Reads or measures the cluster. `world`: the ranks that measure, null without --measure.
  void run(const fast::mpi::Communicator* world) const;

 private:
  void add_candidates();
  void add_output();
  fast::simulation::PlanOptions plan_options() const;
  void print(const tools::MeasuredCluster& described) const;

  tools::Command& command_;
  std::string cluster_, svg_;
  tools::MeasureCommand measure_;
  fast::simulation::PlanOptions options_;  ///< besides the next two
  std::vector<std::string> staleness_, parameters_;
  std::size_t rows_ = 15;
  bool json_ = false;
};

}  // namespace fast_topology
