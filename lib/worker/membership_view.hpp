// Which workers are gone, and the end of training with those that are left.
#pragma once

#include <fast/core/deadline.hpp>

#include <memory>
#include <vector>

#include "exchange/peers.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

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
