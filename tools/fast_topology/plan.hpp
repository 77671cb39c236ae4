// fast-topology plan: which topology, staleness and codec suit a cluster.
#pragma once

#include <fast/exchange/group.hpp>
#include <fast/mpi/communicator.hpp>
#include <fast/simulation/plan.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "measure/measured_cluster.hpp"

namespace fast_topology {

/// The options of --measure, the cluster on which the ranks run, and what they ask for.
class MeasureCommand {
 public:
  /// `cluster`: the file of a cluster that is not measured.
  MeasureCommand(tools::Command& command, std::string& cluster);
  /// Throws Error(argument) for options that ask for nothing without --measure.
  void check_unused() const;

  /// Collective. Links, step time and payload. The same cluster on every rank. Throws the same
  /// Error on every rank.
  tools::MeasuredCluster measure(const fast::mpi::Communicator& world) const;
  /// Writes the cluster, if that is asked for. Throws Error(resource).
  void write(const tools::MeasuredCluster& measured) const;

 private:
  void add_measurement(tools::Command& command);
  void check(const fast::Group& group) const;

  std::vector<const CLI::Option*> of_measurement_;  ///< that ask for nothing without --measure
  bool asked_ = false;
  std::string write_cluster_, model_ = "lenet";
  std::optional<double> step_ms_, parameters_;
  int batch_size_ = 64;
  double budget_s_ = 10;
};

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
  MeasureCommand measure_;
  fast::simulation::PlanOptions options_;  ///< besides the next two
  std::vector<std::string> staleness_, parameters_;
  std::size_t rows_ = 15;
  bool json_ = false;
};

}  // namespace fast_topology
