// Events of a Worker in the rounds of its run.
#pragma once

#include <fast/core/observer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace fast::train {

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

}  // namespace fast::train
