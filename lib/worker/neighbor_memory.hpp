// Which neighbors take part in a combination. Rules that remember their neighbors begin a new epoch
// when a neighbor leaves or comes back, or when a spare has taken its seat.
#pragma once

#include <optional>
#include <vector>

#include "worker/context.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

class NeighborMemory {
 public:
  explicit NeighborMemory(const Context& context);

  /// The epoch after a combination with these arrivals: the newest that any of them has; or one
  /// more than this worker's when a neighbor has left or come back, or is another rank. One more
  /// than any when this worker has missed messages of a neighbor that is there again. Notes who is
  /// there.
  double epoch_after(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round);
  /// The neighbors that are there, with their weights. Messages of another epoch are left out,
  /// except running sums, of which the mixer then takes nothing.
  combine::Neighborhood neighborhood(const std::vector<Arrival>& arrivals,
                                     const RoundPlan::Round& round) const;

  /// This worker has left out rounds, or is new in its place.
  void leave_out_rounds() { left_out_rounds_ = true; }

 private:
  struct Changes {
    bool any = false;
    bool source_came = false;
  };
  enum class Change { none, left, came, other };  ///< other: another rank is in its place
  int rank_of(int worker) const;
  Change meet(int worker, std::optional<int> rank);
  Changes note(const std::vector<Arrival>& arrivals, const RoundEdges& edges);
  double kept_shares(const RoundPlan::Round& round) const;

  Context worker_;
  /// By worker, the rank that was there when this worker last met it; none: it was absent.
  std::vector<std::optional<int>> met_;
  bool left_out_rounds_ = false;
};

}  // namespace fast::worker
