// Topologies over time, and rules that make one for any number of workers.
#pragma once

#include <fast/topology/topology.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fast {

/// The topology of every round, the same on all workers without talking. It is a value, immutable
/// and thread-safe. A Topology is a schedule that never changes.
class Schedule {
 public:
  using AtRound = std::function<Topology(std::int64_t round)>;

  Schedule(Topology topology);  // NOLINT: a topology is a schedule
  /// These topologies in turn, again and again. Throws Error(topology) when there are none or their
  /// numbers of workers differ.
  Schedule(std::string name, std::vector<Topology> rounds);
  /// `period` rounds repeat; 0 when the sequence never repeats. at_round must be a pure function.
  Schedule(std::string name, int workers, std::int64_t period, AtRound at_round);

  const std::string& name() const { return name_; }
  int workers() const { return workers_; }
  std::int64_t period() const { return period_; }
  /// How many rounds show all that the schedule does: its period, or `of_endless` when it never
  /// repeats.
  std::int64_t period_or(std::int64_t of_endless) const {
    return period_ > 0 ? period_ : of_endless;
  }
  bool is_static() const { return period_ == 1; }
  /// The topology of round `round`. Throws Error(argument) when it is negative.
  Topology at(std::int64_t round) const;
  /// Returns the schedule whose rounds are those of Topology::with_weights.
  Schedule with_weights(WeightRule preferred, bool lazy) const;

 private:
  std::string name_;
  int workers_;
  std::int64_t period_;
  AtRound at_round_;
};

/// A rule that makes a schedule for any number of workers: what the stencil:: and schedule::
/// functions give and what Worker takes. A Topology or Schedule is the rule that fits its own
/// number of workers only.
class TopologyRule {
 public:
  using Make = std::function<Schedule(int workers)>;

  /// `workers` is the number that the rule is made for, 0 when it fits any.
  TopologyRule(std::string name, Make make, int workers = 0);
  TopologyRule(Topology topology);  // NOLINT: converts on purpose
  TopologyRule(Schedule schedule);  // NOLINT

  const std::string& name() const { return name_; }
  /// The number of workers it is made for (of a file of edges: the least that holds them), or 0.
  int natural_workers() const { return workers_; }
  /// Throws Error(topology) when the rule does not fit that number of workers.
  Schedule make(int workers) const;

 private:
  std::string name_;
  Make make_;
  int workers_;
};

}  // namespace fast
