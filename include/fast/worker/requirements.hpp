// Whether a rule fits a schedule, and with which weights a Worker runs it there.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/mixing/check.hpp>
#include <fast/topology/schedule.hpp>

#include <cstdint>
#include <string>

namespace fast {

/// What a rule asks of its mixing weights, for require_mixing(). A Worker runs rules that ask for a
/// doubly stochastic matrix with other weights too, and warns: see fitting_weights().
MixingNeeds requirements(const algorithm::RuleTraits& rule);

/// The weight rule that a rule takes for `automatic` on that schedule; any other stays.
WeightRule weight_rule_for(const algorithm::RuleTraits& rule, const Schedule& schedule,
                           WeightRule given);

/// Mixing weights, and how they were chosen.
struct FittingWeights {
  WeightRule rule = WeightRule::automatic;
  bool lazy = false;
  std::string notice;  ///< what the user should know; mostly empty
};

/// The weights with which a Worker runs the rule on the schedule: those given, or others where the
/// rule needs them. Throws Error(topology) when schedule or weights do not fit the rule. Every
/// worker comes to the same result alone. O(edges·period).
FittingWeights fitting_weights(const Schedule& schedule, const algorithm::RuleTraits& rule,
                               WeightRule weights, bool lazy, std::int64_t staleness = 0);

}  // namespace fast
