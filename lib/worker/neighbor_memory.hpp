// Which neighbors take part in a combination. Rules that remember their neighbors begin a new epoch
// when a neighbor leaves or comes back, or when a spare has taken its seat.
#pragma once

#include <vector>

#include "worker/context.hpp"
#include "worker/presence.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

class NeighborMemory {
 public:
  explicit NeighborMemory(const Context& context);

  /// The epoch after a combination with these arrivals: the newest that any of them has; or one
  /// more than this worker's when a neighbor has left or come back, or is another rank. Notes who
  /// is there.
  double epoch_after(const std::vector<Arrival>& arrivals, const RoundPlan::Round& round);
  /// The neighbors that are there, with their weights. Messages of another epoch are left out,
  /// except running sums, of which the mixer then takes nothing.
  combine::Neighborhood neighborhood(const std::vector<Arrival>& arrivals,
                                     const RoundPlan::Round& round) const;

 private:
  int rank_of(int worker) const;
  bool note(const std::vector<Arrival>& arrivals, const RoundEdges& edges);
  double kept_shares(const RoundPlan::Round& round) const;

  Context worker_;
  Presence presence_;
};

}  // namespace fast::worker
