// Events of a Worker in the rounds of its run.
#pragma once

#include <fast/core/observer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace fast::train {

/// Tells an observer what a Worker tells, with rounds as the run counts them: a Worker may count
/// from 0 in a run that was resumed.
class CountedRounds final : public Observer {
 public:
  explicit CountedRounds(std::shared_ptr<Observer> observer) : observer_(std::move(observer)) {}
  /// As many were made before those of the Worker.
  void set_before(std::int64_t rounds) { before_ = rounds; }

  void on_phase(const PhaseEvent& event) noexcept override { observer_->on_phase(counted(event)); }
  void on_message(const MessageEvent& event) noexcept override {
    observer_->on_message(counted(event));
  }
  void on_peer(const PeerEvent& event) noexcept override { observer_->on_peer(counted(event)); }

 private:
  template <class Event>
  Event counted(Event event) const {
    event.round += before_;
    return event;
  }

  std::shared_ptr<Observer> observer_;
  std::atomic<std::int64_t> before_{0};
};

}  // namespace fast::train
