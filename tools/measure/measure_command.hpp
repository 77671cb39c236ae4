// fast-topology plan --measure: the cluster on which the ranks run.
#pragma once

#include <fast/exchange/group.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "measure/measured_cluster.hpp"

namespace tools {

/// The options of the measurement, and what they ask for.
class MeasureCommand {
 public:
  /// `cluster`: the file of a cluster that is not measured.
  MeasureCommand(Command& command, std::string& cluster);
  /// Throws Error(argument) for options that ask for nothing without --measure.
  void check_unused() const;

  /// Collective. Links, step time and payload. The same cluster on every rank. Throws the same
  /// Error on every rank.
  MeasuredCluster measure(const fast::mpi::Communicator& world) const;
  /// Writes the cluster, if that is asked for. Throws Error(resource).
  void write(const MeasuredCluster& measured) const;

 private:
  void add_measurement(Command& command);
  void check(const fast::Group& group) const;

  std::vector<const CLI::Option*> of_measurement_;  ///< that ask for nothing without --measure
  bool asked_ = false;
  std::string write_cluster_, model_ = "lenet";
  std::optional<double> step_ms_, parameters_;
  int batch_size_ = 64;
  double budget_s_ = 10;
};

}  // namespace tools
