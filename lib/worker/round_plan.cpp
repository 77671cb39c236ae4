#include "worker/round_plan.hpp"

#include <fast/core/error.hpp>

namespace fast::worker {
namespace {
constexpr std::size_t most_remembered = 1024;
}

RoundPlan::RoundPlan(Schedule schedule, int worker, WeightRule rule, bool lazy)
    : schedules_{{0, std::move(schedule)}}, worker_(worker), rule_(rule), lazy_(lazy) {}

void RoundPlan::change(Schedule schedule, std::int64_t from) {
  const std::lock_guard lock(mutex_);
  schedules_.push_back({from, std::move(schedule)});
  rounds_.clear();
}

const RoundPlan::Piece& RoundPlan::piece(std::int64_t combination) const {
  std::size_t last = schedules_.size() - 1;
  while (schedules_[last].from > combination) --last;
  return schedules_[last];
}

std::shared_ptr<const RoundPlan::Round> RoundPlan::at(std::int64_t combination) {
  const std::lock_guard lock(mutex_);
  // Only the newest schedule's rounds are remembered, by their place in the period.
  const Piece& newest = schedules_.back();
  if (combination < newest.from) return make(combination);
  const std::int64_t period = newest.schedule.period();
  const std::int64_t key = period > 0 ? combination % period : combination;
  const auto known = rounds_.find(key);
  if (known != rounds_.end()) return known->second;
  if (rounds_.size() >= most_remembered) rounds_.clear();
  return rounds_.emplace(key, make(combination)).first->second;
}

std::shared_ptr<const RoundPlan::Round> RoundPlan::make(std::int64_t combination) const {
  const Topology topology = piece(combination).schedule.at(combination);
  auto round = std::make_shared<Round>();
  round->row = mixing_row(topology, worker_, rule_, lazy_);
  round->edges = {round->row.neighbors, topology.out_neighbors(worker_)};
  return round;
}

}  // namespace fast::worker
