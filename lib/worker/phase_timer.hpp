// Where a worker's time goes: adds up, and tells the observer.
#pragma once

#include "worker/context.hpp"

namespace fast::worker {

/// From its construction to its end.
class PhaseTimer {
 public:
  PhaseTimer(const Context& worker, Phase phase, double& total_s)
      : observer_(worker.options().observer.get()),
        total_s_(total_s),
        event_{phase, rank_of(worker), worker.progress.stats.rounds, -1, Clock::now(), {}} {}
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  ~PhaseTimer() {
    event_.ended = Clock::now();
    total_s_ += Seconds(event_.ended - event_.began).count();
    if (observer_ != nullptr) observer_->on_phase(event_);
  }

 private:
  /// Asked for where somebody is told.
  static int rank_of(const Context& worker) {
    return worker.options().observer ? worker.rank() : 0;
  }

  Observer* observer_;
  double& total_s_;
  PhaseEvent event_;
};

}  // namespace fast::worker
