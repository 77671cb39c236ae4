// The edges that an exchange asks for, of whoever holds the seats.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/exchange/exchange.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "exchange/seats/seat_keeper.hpp"
#include "exchange/seats/seated_link.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

/// A spare opens its link before it knows its seat: until then it has no edges. Any thread may ask.
class SeatPlan {
 public:
  SeatPlan(algorithm::RuleTraits traits, std::shared_ptr<exchange::SeatKeeper> keeper)
      : traits_(std::move(traits)), keeper_(std::move(keeper)) {}

  /// The plan of this worker's seat.
  void set(std::shared_ptr<RoundPlan> plan) {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(plan);
  }
  /// In ranks of Group::everyone().
  RoundEdges edges(std::int64_t combination) const {
    const std::shared_ptr<RoundPlan> plan = this->plan();
    if (!plan || !reads_neighbors(traits_, combination)) return {};
    const std::shared_ptr<const RoundPlan::Round> round = plan->at(combination);
    return keeper_ ? exchange::in_ranks(round->edges, *keeper_) : round->edges;
  }

 private:
  std::shared_ptr<RoundPlan> plan() const {
    const std::lock_guard lock(mutex_);
    return plan_;
  }

  algorithm::RuleTraits traits_;
  std::shared_ptr<exchange::SeatKeeper> keeper_;  ///< null: seats are ranks
  mutable std::mutex mutex_;
  std::shared_ptr<RoundPlan> plan_;
};

inline EdgePlan edges_of(std::shared_ptr<const SeatPlan> plan) {
  return [plan = std::move(plan)](std::int64_t combination) { return plan->edges(combination); };
}

}  // namespace fast::worker
