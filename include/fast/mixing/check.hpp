// Whether a schedule with its weights does what averaging needs.
#pragma once

#include <fast/mixing/weights.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fast {

/// Of schedules that never repeat, this many rounds are looked at.
inline constexpr std::int64_t looked_at_of_endless = 24;

/// What was found over one period, or looked_at_of_endless rounds.
struct MixingCheck {
  bool connected = true;  ///< every worker's value reaches every other
  bool rows = true;       ///< every row sums to 1 (to 1e-9), as averaging needs
  bool columns = true;    ///< every column does, as push-sum needs; with rows: doubly stochastic
  /// Every column sums to 1 on average over the rounds. With rows: workers that agree keep their
  /// mean, and updates of all workers count equally in the long run.
  bool columns_on_average = true;
  bool symmetric = true;  ///< W_ij = W_ji
  bool nonnegative = true;
  bool pairs = true;     ///< every worker reads one other at most, with weight 1/2
  bool tree = true;      ///< edges go both ways, connect all and close no cycle
  int degree = 0;        ///< most workers that one reads
  bool complete = true;  ///< every worker reads all others, all with weight 1/N
  /// One line for each of these that does not hold: which worker, which sum, what would mend it.
  std::vector<std::string> findings;
  std::string unconnected;  ///< of these the line for `connected`
  std::string asymmetry;    ///< the same for `symmetric`, which only some algorithms need
  bool doubly_stochastic() const { return rows && columns; }
  bool doubly_stochastic_on_average() const { return rows && columns_on_average; }
};

/// O(edges·period). Throws Error(topology) when the rule does not fit the graph.
MixingCheck check_mixing(const Schedule& schedule, WeightRule rule = WeightRule::automatic,
                         bool lazy = false);

}  // namespace fast
