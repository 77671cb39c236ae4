// What happens in a run with spares, drawn from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace seats {

enum class Event {
  nothing,           ///< no spare is needed
  kill,              ///< a worker dies
  kill_two,          ///< two die at once, two spares wait
  kill_spare,        ///< a spare dies asleep, later a worker; another spare waits
  kill_the_seated,   ///< a worker dies, later the spare that has its seat
  kill_too_many,     ///< two die, one spare waits
  pause,             ///< a worker is suspended until a spare has its seat, and comes back
  grow,              ///< a spare joins
  grow_two,          ///< two join
  grow_and_kill,     ///< a spare joins, later a worker dies, whose seat another spare takes
  grow_and_kill_it,  ///< a spare joins and dies later; another spare takes its seat
};

inline constexpr double suspect_after_s = 1, step = 0.05;

struct Plan {
  std::uint64_t seed = 0;
  Event event = Event::nothing;
  int workers = 4, spares = 2;
  int hosts = 1;
  std::string rule = "awc", topology = "ring";
  std::int64_t staleness = 0;  ///< negative: unbounded
  std::string path = "measured";
  std::string weights = "host";  ///< or on devices: "staged", "mapped"
  std::vector<int> victims;      ///< ranks, in the order of their deaths
  int round = 50;                ///< of the first event
  int delay_us = 0;

  /// News of claims take a second between hosts.
  double pause_s() const { return hosts > 1 ? 5 : 2.5; }
  int ranks() const { return workers + spares; }
  /// Spares that join.
  int growths() const;
  /// In the end.
  int seats() const { return workers + growths(); }
  /// Ranks that come to the end without a seat.
  int idle() const;
  std::string host_list() const;
};

/// The same for the same numbers. `rules` and `hosts` are chosen from. `devices`: the weights are
/// there.
Plan draw(std::uint64_t seed, std::uint64_t index, int hosts, const std::vector<std::string>& rules,
          bool devices);

std::string name(Event event);
std::string write(const Plan& plan);
Plan read(const std::string& text);

/// Of the parabola of that seat. Those of victims and of workers that join are far from the others.
double target(const Plan& plan, int seat);
int rounds_of(const Plan& plan);

struct Result {
  int rank = 0, seat = 0;
  double own = 0;   ///< the weights
  double mean = 0;  ///< the mean model's
  int lost = 0, torn = 0;
  double longest_s = 0;
};

/// Empty if all is as it should be. `status`: of fastrun; negative: it hung.
std::string judge(const Plan& plan, int status, const std::vector<Result>& results, int idle);

}  // namespace seats
