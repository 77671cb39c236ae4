// What happens to a run: drawn from a seed, so that every schedule can be had again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chaos {

enum class Kind {
  nothing,
  kill,
  kill_two,
  stop,
  slow,
  kill_at_start,
  kill_at_end,
  cut,
  cut_and_kill
};

struct Plan {
  Kind kind = Kind::nothing;
  int workers = 4;
  std::string topology = "ring";
  std::string algorithm = "awc";
  std::int64_t staleness = 0;  ///< -1: unbounded
  std::vector<int> victims;    ///< cut_and_kill: who has the link cut, who dies
  int round = 0;               ///< in which it happens
  int delay_us = 0;    ///< after that round's beginning: somewhere in computing, mixing, publishing
  double pause_s = 0;  ///< of a stop, or of the link between two hosts
  int hosts = 1;
  bool one_link = false;          ///< of three hosts, a cut is between the first two only
  std::string path = "measured";  ///< between hosts
  bool large = false;             ///< weights that travel between hosts in parts
  bool lenet = false;             ///< in place of a parabola
  bool devices = false;           ///< weights are on devices, made of host memory that MPI reads
  std::uint64_t seed = 1;         ///< of LeNet's weights and batches

  bool cuts() const { return kind == Kind::cut || kind == Kind::cut_and_kill; }
  /// Those killed in the course of training.
  std::vector<int> killed() const;
  /// For fastrun --hosts: workers spread as evenly as can be.
  std::string host_list() const;
};

/// Of schedule `index` under `seed`: on one host, or on two or three.
Plan draw(std::uint64_t seed, std::uint64_t index);
Plan draw_on_hosts(int hosts, std::uint64_t seed, std::uint64_t index);
/// The same with one of `rules`, at a staleness and on a topology that the rule runs with.
void choose_rule(Plan& plan, const std::vector<std::string>& rules, std::uint64_t seed);
/// Rules whose survivors have an optimum to come to.
std::vector<std::string> all_rules();
/// The same with LeNet, of 3 or 4 workers, on weights and batches of that seed.
void train_lenet(Plan& plan, std::uint64_t seed);

/// One line that read() understands.
std::string write(const Plan& plan);
Plan read(const std::string& line);

std::string name(Kind kind);

/// Of a worker's own in every round.
inline int pause_ms(const Plan& plan) { return plan.lenet ? 1 : plan.hosts > 1 ? 4 : 2; }
/// LeNet's: until more samples hardly help. Else long enough to forget those that died early, once
/// they have been noticed, and to bring those back in that were away: workers that never wait make
/// many rounds until then.
int rounds_of(const Plan& plan);
inline constexpr double step = 0.05;  ///< of gradient descent
inline constexpr double suspect_after_s = 1;

/// A round near the end, by which all that comes of what happened has settled.
inline int settled_round(const Plan& plan) { return rounds_of(plan) - 20; }

/// Where worker `rank` would go by itself; the optimum of several is the mean.
double target(int rank);

/// One rank of a run; leaves DIRECTORY/result-RANK. When the link is to be cut, the first victim
/// asks for it by DIRECTORY/cut.
int work(int argc, char** argv, const Plan& plan, const std::string& directory);

}  // namespace chaos
