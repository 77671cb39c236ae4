// fast-topology plan: which topology, staleness and codec suit a cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <fast/mpi/communicator.hpp>
#include <fast/simulation/plan.hpp>
#include <string>
#include <vector>

#include "measure/measure_command.hpp"

namespace tools {

/// The options of the subcommand.
class PlanCommand {
 public:
  explicit PlanCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  /// Reads or measures the cluster. `world`: the ranks that measure, null without --measure.
  void run(const fast::mpi::Communicator* world) const;

 private:
  fast::simulation::PlanOptions plan_options() const;
  void print(const MeasuredCluster& described) const;

  CLI::App* command_;
  MeasureCommand measure_;
  std::string cluster_, svg_;
  std::vector<std::string> topologies_, codecs_, staleness_, parameters_;
  std::string algorithm_ = "awc";
  std::int64_t rounds_ = 100;
  std::uint64_t seed_ = 1;
  std::size_t rows_ = 15;
  bool json_ = false;
};

}  // namespace tools
