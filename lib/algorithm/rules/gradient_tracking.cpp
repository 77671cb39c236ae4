#include "algorithm/rules/gradient_tracking.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {
namespace {
constexpr double least_given = 1e-9;  ///< above rounding
}

RuleTraits GradientTracking::traits() {
  return {.name = "gradient_tracking",
          .summary = "y ← W y + δ - δ⁻, x ← W x + y: y tracks the workers' mean step",
          .source = "DIGing, Nedić et al. 2017, arXiv 1607.03218, algorithm 1",
          .messages = {.vectors = 2, .delivery = Delivery::summed, .summed_from = 1},
          .timing = {.publish_point = PublishPoint::after_step,
                     .why_bounded = "asynchronous tracking is analyzed for bounded delays only"},
          .topology = {.passes_mass = true},
          .memory = {.vectors = 2, .remembers_neighbors = true},
          .step = {.stable_rates =
                       "gradient_tracking adds the step after the average (DIGing, x ← W x + y): "
                       "it is stable "
                       "for learning rate × curvature up to 1/2, on directed graphs far less"}};
}

void GradientTracking::begin_combine(const RoundInfo& info, std::span<const double>,
                                     std::span<const double>) {
  was_alone_ = is_alone_ != 0;
  if (info.restarts) return;
  if (info.neighbor_weight > 0) {
    given_ = 0;
  } else if (info.self_weight < 1 - least_given) {
    ++given_;
  }
  is_alone_ = given_ > info.workers ? 1 : 0;
}

Rule gradient_tracking() { return elementwise(GradientTracking{}); }

const RuleEntry entries::gradient_tracking{
    [](ParameterReader&) { return algorithm::gradient_tracking(); }};

}  // namespace fast::algorithm
