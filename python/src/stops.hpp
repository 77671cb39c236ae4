// How the workers of a Python program stop together when one of them is asked to.
#pragma once

#include <atomic>
#include <cstdint>
#include <fast/worker/worker.hpp>
#include <utility>

#include "train/control/run_control.hpp"

namespace fast::python {

/// Of workers that this process makes from now on.
inline std::atomic<bool> stops_are_wanted = false;
/// Set by a signal handler, for all workers of this process.
inline std::atomic<bool> stop_is_asked = false;

/// One worker's part. As fast-train's: at staleness 0 all stop after the same round.
class Stops {
 public:
  /// Collective over all ranks, spares among them.
  Stops(const Group& group, const WorkerOptions& options)
      : control_(group, {.exact = options.staleness == 0,
                         .silent_after = options.suspect_after.value_or(Seconds(5)),
                         .deadline = options.deadline,
                         .stop_requested = [] { return stop_is_asked.load(); }}) {}

  /// A spare begins in that round.
  void join(std::int64_t rounds) { control_.join(rounds); }
  /// Between rounds, when `rounds` are made. Waits for the others only while all agree on a round.
  /// Whether this worker has come to it.
  bool is_due(std::int64_t rounds) {
    const train::Turn turn = control_.take_turn(rounds, 0);
    is_due_ = turn == train::Turn::stop;
    return is_due_;
  }
  /// This worker makes no more rounds.
  void end(std::int64_t rounds) {
    if (std::exchange(has_ended_, true)) return;
    control_.end(is_due_ ? train::Stage::stopped : train::Stage::done, rounds);
  }

 private:
  train::RunControl control_;
  bool is_due_ = false, has_ended_ = false;
};

}  // namespace fast::python
