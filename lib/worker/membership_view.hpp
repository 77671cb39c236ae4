// Whether a worker keeps up with its neighbors.
#pragma once

#include <fast/core/deadline.hpp>

#include <memory>
#include <vector>

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

// Which workers are gone, and the end of training with those that are left.

class MembershipView {
 public:
  MembershipView(const WorkerConfig& setting, std::shared_ptr<Peers> peers, const RoundPlan& plan);

  /// Looks for workers of this host that have become silent, unless it did so a moment ago. Warns
  /// when the topology falls into parts without them. Throws Error(peer_failed) if a worker of any
  /// host is known to have failed. Does not wait.
  void look() {
    if (Clock::now() - looked_ >= period) look_around();
  }
  /// After this worker has finished: blocks until every worker has finished or is lost. Throws as
  /// Worker::await_finish().
  void await_finish();
  Departures departed(const std::vector<int>& ask) const;
  /// The workers whose weights this worker's have been averaged with: all that have not left; or,
  /// at the end of training, those that it can still reach through living workers.
  std::vector<int> own_part(bool at_end) const;

 private:
  static constexpr Seconds period{0.05};
  void look_around();
  std::vector<int> take_back();
  bool has_begun(int worker) const;
  void warn_of_parts() const;
  std::vector<int> gone() const;

  const WorkerConfig& setting_;
  std::shared_ptr<Peers> peers_;
  const RoundPlan& plan_;
  std::vector<int> lost_, left_;
  Clock::time_point looked_{};
};

}  // namespace fast::worker
