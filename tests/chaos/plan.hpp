// What happens to a run: drawn from a seed, so that every schedule can be had again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chaos {

enum class Kind { nothing, kill, kill_two, stop, slow, kill_at_start, kill_at_end };

struct Plan {
  Kind kind = Kind::nothing;
  int workers = 4;
  std::string topology = "ring";
  std::string algorithm = "awc";
  std::int64_t staleness = 0;  ///< -1: unbounded
  std::vector<int> victims;
  int round = 0;       ///< in which it happens
  int delay_us = 0;    ///< after that round's beginning: somewhere in computing, mixing, publishing
  double pause_s = 0;  ///< of a stop
};

/// Of schedule `index` under `seed`.
Plan draw(std::uint64_t seed, std::uint64_t index);

/// One line that read() understands.
std::string write(const Plan& plan);
Plan read(const std::string& line);

std::string name(Kind kind);

/// Long enough to forget those that died early, once they have been noticed: workers that never
/// wait make many rounds until then.
inline int rounds_of(const Plan& plan) { return plan.staleness < 0 ? 1000 : 250; }
inline constexpr double step = 0.05;  ///< of gradient descent
inline constexpr double suspect_after_s = 1;

/// Where worker `rank` would go by itself; the optimum of several is the mean.
double target(int rank);

/// One rank of a run; leaves DIRECTORY/result-RANK.
int work(int argc, char** argv, const Plan& plan, const std::string& directory);

}  // namespace chaos
