#include "fast_train/clocks.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <utility>

#include "observe/clock_offset.hpp"

namespace fast_train {

using fast::Deadline;

Clocks::Clocks(const fast::Group& group, fast::Seconds deadline)
    : group_(group),
      deadline_(deadline),
      offset_s_(fast::observe::clock_offset(group.everyone(), Deadline(deadline)).count()) {}

Clocks::MakeObserver Clocks::telling(MakeObserver make) {
  return [this, make = std::move(make)](int worker, const fast::LogSink& log) {
    observer_ = make(worker, log);
    tell(worker);
    return observer_;
  };
}

void Clocks::finish(const fast::train::Summary& summary) {
  if (!summary.same_workers() || group_.some_are_gone()) return;
  try {
    const Deadline soon(std::min(deadline_, fast::Seconds(5)));
    offset_s_ = fast::observe::clock_offset(group_, soon).count();
    tell(group_.rank());
  } catch (const fast::Error&) {
    // A worker was lost meanwhile. The first offset holds.
  }
}

void Clocks::tell(int worker) const {
  if (observer_)
    observer_->on_scalar(
        {fast::observe::clock_offset_name, offset_s_, worker, 0, fast::Clock::now()});
}

}  // namespace fast_train
