#include "worker/start/seat_plan.hpp"

#include "exchange/seats/seated_link.hpp"
#include "worker/context.hpp"

namespace fast::worker {

void SeatPlan::set(std::shared_ptr<RoundPlan> plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
}

RoundEdges SeatPlan::edges(std::int64_t combination) const {
  std::shared_ptr<RoundPlan> plan;
  {
    const std::lock_guard lock(mutex_);
    plan = plan_;
  }
  if (!plan || !reads_neighbors(declared_, combination)) return {};
  const std::shared_ptr<const RoundPlan::Round> round = plan->at(combination);
  return keeper_ ? exchange::in_ranks(round->edges, *keeper_) : round->edges;
}

}  // namespace fast::worker
