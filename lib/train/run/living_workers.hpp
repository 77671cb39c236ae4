// How many workers train.
#pragma once

#include <fast/core/deadline.hpp>

#include <vector>

#include "train/run/replica.hpp"
#include "train/run/run_checkpoint.hpp"

namespace fast::train {

/// Lost or left, as far as this worker knows. A worker knows those of its own host, the control
/// those that have left of all hosts.
std::vector<int> gone_workers(const Replica& replica, const RunCheckpoint& checkpoint);

/// For figures of speed: looks around 20 times a second at most.
class LivingWorkers {
 public:
  LivingWorkers(const Group& group, const Replica& replica, const RunCheckpoint& checkpoint)
      : group_(group), replica_(replica), checkpoint_(checkpoint) {}

  /// All but those that are lost, silent or gone, on all hosts. At least 1: this one.
  int count();

 private:
  static constexpr Seconds period{0.05};
  const Group& group_;
  const Replica& replica_;
  const RunCheckpoint& checkpoint_;
  int count_ = 0;
  Clock::time_point counted_{};
};

}  // namespace fast::train
