#include <fast/topology/weight_rule.hpp>

#include "core/registry.hpp"

namespace fast {
namespace {

/// By WeightRule.
constexpr Named<WeightRule> rules[] = {{"metropolis", WeightRule::metropolis},
                                       {"uniform_rows", WeightRule::uniform_rows},
                                       {"uniform_columns", WeightRule::uniform_columns},
                                       {"given", WeightRule::given},
                                       {"automatic", WeightRule::automatic}};
constexpr Registry rules_by_name{rules, "weights: there is no rule \"{}\"; choose from {}"};

}  // namespace

std::string_view name(WeightRule rule) noexcept {
  return rules[static_cast<std::size_t>(rule)].name;
}

WeightRule weight_rule_by_name(std::string_view name) { return rules_by_name.at(name).value; }

}  // namespace fast
