#include "algorithm/rules/push_sum.hpp"
#include "algorithm/rule_entry.hpp"

#include <algorithm>

namespace fast::algorithm {
namespace {
constexpr double lightest_pusher = 1e-6, rounding = 1e-12;
/// At staleness 0, of a worker to which nobody pushed in the last round.
constexpr double lightest_alone = 0.5;
/// Stale workers: a step moves z by at most so many δ. Where a neighbor takes nothing for a long
/// time, all masses shrink, the typical one too, and steps δ/p would grow without a limit.
constexpr double most_gain = 4;
}  // namespace

RuleTraits PushSum::traits() {
  return {.name = "push_sum",
          .summary = "x ← P (x + δ(z)), p ← P p, z = x/p: for directed graphs",
          .source = "SGP, Assran et al. 2019, arXiv 1811.10792, algorithm 1",
          .messages = {.scalars = 1, .delivery = Delivery::summed, .weights_apart = true},
          .timing = {.publish_point = PublishPoint::after_step,
                     .why_bounded = "asynchronous push-sum is analyzed for bounded delays only"},
          .topology = {.mixing = MixingRequirement::column_stochastic},
          .precision = {.why_exact = "a rounded value would lose mass or make some"},
          .memory = {.vectors = 1, .remembers_neighbors = true}};
}

bool PushSum::begin_publish(const RoundInfo& info, std::span<double> scalars) {
  keeps_ = info.asynchronous ? mass_ < std::max(typical_mass_ / 2, lightest_pusher)
                             : hears_nobody_ != 0 && mass_ < lightest_alone;
  held_ = keeps_ ? mass_ : 0;
  step_ = info.asynchronous ? std::min({1.0, mass_ / typical_mass_, most_gain * mass_}) : 1;
  scalars[0] = keeps_ ? 0 : mass_;
  return true;
}

void PushSum::begin_combine(const RoundInfo& info, std::span<const double> own,
                            std::span<const double> pull) {
  const double arrived = pull[0] + info.neighbor_weight * own[0];
  mass_ = held_ + info.self_weight * own[0] + arrived;
  hears_nobody_ = arrived <= rounding ? 1 : 0;
  typical_mass_ += arrived > rounding ? (mass_ - typical_mass_) / 8 : -typical_mass_ / 100;
}

Rule push_sum() { return elementwise(PushSum{}); }

const RuleEntry entries::push_sum{[](ParameterReader&) { return algorithm::push_sum(); }};

}  // namespace fast::algorithm
