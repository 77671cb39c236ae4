// Whether a worker keeps up with its neighbors.
#pragma once

#include <vector>

#include "exchange/peers.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

class LagDetector {
 public:
  LagDetector(const Context& context, const Peers& peers, RoundPlan& plan);

  /// False if the round cannot be made: the neighbors have gone on without this worker. At
  /// staleness above 0, call it in every combination: it looks at the time since the last call.
  bool keeps_up(const std::vector<Arrival>& arrivals);
  /// The furthest round of a living neighbor of the coming round; at least this worker's own.
  std::int64_t furthest_neighbor() const;

 private:
  bool was_stopped();
  /// After this time of silence neighbors suspect this worker.
  Seconds patience() const;

  Context worker_;
  const Peers& peers_;
  RoundPlan& plan_;
  Clock::time_point asked_ = Clock::now();
  std::uint64_t beats_ = 0;  ///< heartbeats of this process at the last call
};

}  // namespace fast::worker
