// How the workers of a Python program stop together when one of them is asked to.
#pragma once

#include <atomic>
#include <cstdint>
#include <fast/worker/worker.hpp>
#include <memory>
#include <utility>

#include "exchange/open_coordinator.hpp"
#include "membership/run_agreement.hpp"

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
      : Stops(group, options,
              exchange::coordinator_of_run(group, membership::record_format(),
                                           Deadline(options.deadline))) {}

  /// A spare begins in that round.
  void join(std::int64_t rounds) { agreement_.join(rounds); }
  /// Between rounds, when `rounds` are made. Waits for the others only while all agree on a round.
  /// Whether this worker has come to it.
  bool is_due(std::int64_t rounds) {
    const membership::RoundDecision turn = agreement_.take_turn(rounds, 0);
    is_due_ = turn == membership::RoundDecision::stop;
    return is_due_;
  }
  /// This worker makes no more rounds.
  void end(std::int64_t rounds) {
    if (std::exchange(has_ended_, true)) return;
    agreement_.end(is_due_ ? membership::Stage::stopped : membership::Stage::done, rounds);
  }

 private:
  Stops(const Group& group, const WorkerOptions& options,
        const std::shared_ptr<membership::Coordinator>& coordinator)
      : agreement_(coordinator, exchange::rank_map_of(group, coordinator),
                   {.exact = options.staleness == 0,
                    .silent_after = options.suspect_after.value_or(Seconds(5)),
                    .deadline = options.deadline,
                    .stop_requested = [] { return stop_is_asked.load(); }}) {}

  membership::RunAgreement agreement_;
  bool is_due_ = false, has_ended_ = false;
};

}  // namespace fast::python
