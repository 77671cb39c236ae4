// What a run tells its observer. Without one, nothing is done.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/observer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "train/run/training_setup.hpp"

namespace fast::train {

// Events of a Worker in the rounds of its run.

/// Tells observers what a Worker tells, with rounds as the run counts them: a Worker may count from
/// 0 in a run that was resumed.
class CountedRounds final : public Observer {
 public:
  /// Null: there is none at the beginning.
  explicit CountedRounds(std::shared_ptr<Observer> observer) : first_(std::move(observer)) {}
  /// One more, at most once, while events may come.
  void add(std::shared_ptr<Observer> observer) {
    second_ = std::move(observer);
    added_ = second_.get();
  }
  /// As many were made before those of the Worker.
  void set_before(std::int64_t rounds) { before_ = rounds; }

  void on_phase(const PhaseEvent& event) noexcept override { tell(&Observer::on_phase, event); }
  void on_message(const MessageEvent& event) noexcept override {
    tell(&Observer::on_message, event);
  }
  void on_peer(const PeerEvent& event) noexcept override { tell(&Observer::on_peer, event); }
  void on_site(const SiteEvent& event) noexcept override { tell(&Observer::on_site, event); }
  void on_scalar(const ScalarEvent& event) noexcept override { tell(&Observer::on_scalar, event); }

 private:
  template <class Event>
  void tell(void (Observer::*function)(const Event&) noexcept, Event event) const noexcept {
    event.round += before_;
    for (Observer* observer : {first_.get(), added_.load()}) {
      if (observer != nullptr) (observer->*function)(event);
    }
  }

  const std::shared_ptr<Observer> first_;
  std::shared_ptr<Observer> second_;
  std::atomic<Observer*> added_{nullptr};  ///< second_, for the Worker's threads
  std::atomic<std::int64_t> before_{0};
};

class RunEvents {
 public:
  explicit RunEvents(const RunPlan& plan)
      : observer_(plan.options.worker.observer.get()),
        wants_values_(observer_ != nullptr && plan.has_observer),
        worker_(plan.group.rank()) {}

  bool wanted() const { return observer_ != nullptr; }
  /// Whether values() does anything. It copies all weights.
  bool wants_values() const { return wants_values_; }
  void scalar(std::string_view name, double value, std::int64_t round) const {
    if (wanted()) observer_->on_scalar({name, value, worker_, round, Clock::now()});
  }
  /// Something that began then and ends now.
  void milestone(MilestoneEvent::Kind kind, std::string_view text, int epoch, std::int64_t round,
                 Clock::time_point began) const {
    if (wanted()) {
      observer_->on_milestone({kind, text, worker_, epoch, round, began, Clock::now()});
    }
  }
  /// The elements of each parameter of host memory, as floats: "weights/NAME" if `prefix` is
  /// "weights/".
  void values(std::string_view prefix, const std::vector<TensorView>& tensors, int epoch,
              std::int64_t round) const;

 private:
  Observer* observer_;
  bool wants_values_;
  int worker_;
};

}  // namespace fast::train
