#include "algorithm/rules/d2.hpp"
#include "algorithm/rule_entry.hpp"

#include <fmt/core.h>

namespace fast::algorithm {

RuleTraits D2::traits() const {
  return {
      .name = "d2",
      .summary = "W (2x - x⁻ + δ - δ⁻): no error from workers' data differing",
      .source = "D², Tang et al. 2018, arXiv 1803.07068, algorithm 1",
      .messages = {.own = Own::unused, .republishes = true},
      .timing = {.publish_point = PublishPoint::after_step,
                 .why_synchronous = "its correction cancels only terms of one and the same round"},
      .topology = {.mixing = MixingRequirement::positive,
                   .strict = options.strict,
                   .needs_static = true},
      .memory = {.vectors = 1, .remembers_neighbors = true},
      .parameters = fmt::format("strict={}", options.strict)};
}

Rule d2(const D2Options& options) { return elementwise(D2{options}); }

const RuleEntry entries::d2{[](ParameterReader& reader) {
  D2Options options;
  reader.read("strict", options.strict);
  return algorithm::d2(options);
}};

}  // namespace fast::algorithm
