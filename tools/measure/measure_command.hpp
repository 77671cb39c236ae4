// fast-topology plan --measure: the cluster on which the ranks run.
#pragma once

#include <CLI/CLI.hpp>
#include <fast/exchange/group.hpp>
#include <fast/exchange/measured_links.hpp>
#include <fast/simulation/cluster.hpp>
#include <optional>
#include <string>

namespace tools {

struct MeasuredCluster {
  fast::simulation::Cluster cluster;
  fast::MeasuredLinks links;
};

/// The options of the measurement, and what they ask for.
class MeasureCommand {
 public:
  explicit MeasureCommand(CLI::App& command);
  /// Throws Error(argument) for options that ask for nothing without --measure.
  void check_unused() const;

  /// Collective. Links, step time and payload. The same cluster on every rank. Throws the same
  /// Error on every rank.
  MeasuredCluster measure(const fast::mpi::Communicator& world) const;
  /// Writes the cluster, if that is asked for. Throws Error(resource).
  void write(const MeasuredCluster& measured) const;

 private:
  void check(const fast::Group& group) const;
  void time_steps_of(const fast::Group& group, fast::simulation::Cluster& cluster) const;

  bool asked_ = false;
  std::string write_cluster_, model_ = "lenet";
  std::optional<double> step_ms_, parameters_;
  int batch_size_ = 64;
  double budget_s_ = 10;
};

/// Figures in one line, and a line for the slowest pair of hosts if it has less than half of the
/// usual bandwidth.
std::string text_of(const MeasuredCluster& measured);

}  // namespace tools
