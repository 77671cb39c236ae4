// Of all schedules so far: rules by events.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "chaos/plan.hpp"
#include "chaos/verdict.hpp"

namespace chaos {

/// May be used by several threads.
class Tally {
 public:
  void add(const Plan& plan, const Verdict& verdict);
  int failures() const { return failures_; }
  /// A row of a rule, a column of a kind of event: the number of schedules, and the largest
  /// distance of the survivors' mean from their optimum. A schedule counts once for each kind of
  /// its events.
  std::string table() const;
  /// Schedules, failures, hangs, torn reads, lost checkpoints, the longest time that survivors were
  /// held.
  std::string summary() const;

 private:
  struct Cell {
    int schedules = 0, failures = 0;
    double worst = 0;
  };

  std::mutex one_at_a_time_;
  std::map<std::pair<std::string, Kind>, Cell> cells_;
  std::map<Fault, int> faults_;
  int schedules_ = 0, failures_ = 0;
  double longest_s_ = 0;  ///< that survivors of deaths were held
};

}  // namespace chaos
