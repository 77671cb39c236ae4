// The edges that an exchange asks for, of whoever holds the seats.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/exchange/exchange.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "exchange/seats/seated_link.hpp"
#include "membership/members.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

/// A spare opens its link before it knows its seat: until then it has no edges. Any thread may ask.
class SeatPlan {
 public:
  SeatPlan(algorithm::RuleTraits traits, std::shared_ptr<membership::Members> members)
      : traits_(std::move(traits)), members_(std::move(members)) {}

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
    return members_ ? exchange::in_ranks(round->edges, *members_) : round->edges;
  }

 private:
  std::shared_ptr<RoundPlan> plan() const {
    const std::lock_guard lock(mutex_);
    return plan_;
  }

  algorithm::RuleTraits traits_;
  std::shared_ptr<membership::Members> members_;  ///< null: seats are ranks
  mutable std::mutex mutex_;
  std::shared_ptr<RoundPlan> plan_;
};

inline EdgePlan edges_of(std::shared_ptr<const SeatPlan> plan) {
  return [plan = std::move(plan)](std::int64_t combination) { return plan->edges(combination); };
}

}  // namespace fast::worker
