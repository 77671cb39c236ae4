// Events of a worker's links, in the worker's rounds.
#pragma once

#include <fast/core/observer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace fast::worker {

/// Tells an observer what an exchange or a reducer tells, as of the round that the worker is in:
/// these two number combinations or calls.
class RoundEvents final : public Observer {
 public:
  explicit RoundEvents(std::shared_ptr<Observer> observer) : observer_(std::move(observer)) {}
  void begin(std::int64_t round) { round_ = round; }

  void on_phase(const PhaseEvent& event) noexcept override { observer_->on_phase(in_round(event)); }
  void on_peer(const PeerEvent& event) noexcept override { observer_->on_peer(in_round(event)); }

 private:
  template <class Event>
  Event in_round(Event event) const {
    event.round = round_;
    return event;
  }

  std::shared_ptr<Observer> observer_;
  std::atomic<std::int64_t> round_{0};
};

}  // namespace fast::worker
