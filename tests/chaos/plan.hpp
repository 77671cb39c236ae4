// A run and what happens to it, as one line of text.
#pragma once

#include <fast/core/random.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "chaos/event.hpp"

namespace chaos {

struct Plan {
  std::string rule = "awc";
  int workers = 4;
  std::string topology = "ring";
  std::int64_t staleness = 0;  ///< -1: unbounded
  std::string codec = "identity";
  bool sparse = false;    ///< diloco sends its largest entries, choco random ones
  bool rotating = false;  ///< weights live in the slots
  int hosts = 1;
  std::string path = "measured";  ///< between hosts
  bool large = false;             ///< weights that travel between hosts in parts
  bool devices = false;           ///< weights are on devices, made of host memory that MPI reads
  bool lenet = false;             ///< in place of a parabola
  bool learns_suspicion = false;  ///< --suspect-after auto
  std::vector<std::string> with;  ///< of runs of fast-train: features.hpp
  std::uint64_t seed = 1;         ///< of LeNet's weights and batches
  std::vector<Event> events;

  bool has(Kind kind) const;
  /// Whether the run is one of fast-train.
  bool is_training() const;
  /// Those killed in the course of training, sorted; the ranks of a dead host too.
  std::vector<int> killed() const;
  /// Sorted, without repetition.
  std::vector<int> victims_of(Kind kind) const;
  /// Of the events of that kind, the longest.
  double longest_s(Kind kind) const;
  /// For fastrun --hosts: workers spread as evenly as can be.
  std::string host_list() const;
  /// Of a rank, from 1 on.
  int host_of(int rank) const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// One line that read() understands. read() throws std::invalid_argument.
std::string write(const Plan& plan);
Plan read(const std::string& line);

/// Of a worker's own in every round.
inline int pause_ms(const Plan& plan) { return plan.lenet ? 1 : plan.hosts > 1 ? 4 : 2; }
/// LeNet's: until more samples hardly help. Else long enough to forget those that died early, once
/// they have been noticed, and to bring those back in that were away: workers that never wait make
/// many rounds until then.
int rounds_of(const Plan& plan);
inline constexpr double step = 0.05;  ///< of gradient descent
inline constexpr double suspect_after_s = 1;
/// The longest silence that makes no suspect, before the worker knows better: of auto.
inline constexpr double learned_suspect_after_s = 5;
inline double longest_unsuspected_s(const Plan& plan) {
  return plan.learns_suspicion ? learned_suspect_after_s : suspect_after_s;
}

/// A round near the end, by which all that comes of what happened has settled.
inline int settled_round(const Plan& plan) { return rounds_of(plan) - 20; }

/// Where worker `rank` would go by itself; the optimum of several is the mean.
double target(int rank);

bool is_in(const std::vector<int>& ranks, int rank);

}  // namespace chaos
