#include "train/record/round_tally.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace fast::train {

double RoundFigures::age_mean() const {
  if (reads == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(age_sum) / static_cast<double>(reads);
}

template <class Add>
void RoundTally::add_to_both(const Add& add) {
  for (RoundFigures& window : windows_) add(window);
}

/// The waits for single workers within a phase end before it does. Those of another thread than
/// the worker's run beside its phases.
void RoundTally::add(const PhaseEvent& event) {
  const double took_s = Seconds(event.ended - event.began).count();
  const std::lock_guard lock(mutex_);
  if (event.peer >= 0) {
    if (std::this_thread::get_id() == rounds_) peers_wait_s_ += took_s;
    const auto peer = static_cast<std::size_t>(event.peer);
    return add_to_both([&](RoundFigures& sum) {
      sum.waits_s.resize(std::max(sum.waits_s.size(), peer + 1));
      sum.waits_s[peer] += took_s;
    });
  }
  rounds_ = std::this_thread::get_id();
  const double waited_s = std::min(std::exchange(peers_wait_s_, 0), took_s);
  const double worked_s = took_s - waited_s;
  add_to_both([&](RoundFigures& sum) {
    switch (event.phase) {
      case Phase::step:
        sum.step_s += took_s;
        return;
      case Phase::wait:
        sum.wait_s += took_s;
        return;
      case Phase::publish:
        sum.publish_s += worked_s;
        break;
      case Phase::mix:
        sum.mix_s += worked_s;
        break;
      case Phase::commit:
        break;
    }
    sum.wait_s += waited_s;
  });
}

void RoundTally::add(const MessageEvent& event) {
  if (event.kind != MessageEvent::Kind::read) return;
  const std::lock_guard lock(mutex_);
  add_to_both([&](RoundFigures& sum) {
    ++sum.reads;
    sum.age_sum += event.age;
    sum.age_max = std::max(sum.age_max, event.age);
  });
}

void RoundTally::add_wait_within_step(double seconds) {
  const std::lock_guard lock(mutex_);
  add_to_both([&](RoundFigures& sum) {
    sum.step_s -= seconds;
    sum.wait_s += seconds;
  });
}

RoundFigures RoundTally::take(Window window) {
  const std::lock_guard lock(mutex_);
  return std::exchange(windows_[static_cast<std::size_t>(window)], {});
}

}  // namespace fast::train
