// The clocks of the hosts, for timelines and metrics.
#pragma once

#include <fast/core/observer.hpp>
#include <fast/exchange/group.hpp>
#include <fast/train/summary.hpp>
#include <fast/train/trainer.hpp>

#include <memory>

namespace fast_train {

/// Tells this worker's observer how far its clock is ahead of worker 0's: when it is made, and at
/// the end.
class Clocks {
 public:
  using MakeObserver = decltype(fast::train::TrainerOptions::make_observer);

  /// Collective over everyone(): measures.
  Clocks(const fast::Group& group, fast::Seconds deadline);

  /// As measured last.
  double offset_s() const { return offset_s_; }
  /// `make` with an observer that has been told. Must not outlive this.
  MakeObserver telling(MakeObserver make);
  /// Collective. Measures again, where all workers are still there.
  void finish(const fast::train::Summary& summary);

 private:
  void tell(int worker) const;

  fast::Group group_;
  fast::Seconds deadline_;
  double offset_s_ = 0;
  std::shared_ptr<fast::Observer> observer_;
};

}  // namespace fast_train
