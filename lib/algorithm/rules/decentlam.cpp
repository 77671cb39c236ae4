#include "algorithm/rules/decentlam.hpp"

#include "algorithm/checks.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits DecentLam::traits() const {
  return {.name = "decentlam",
          .summary = "z = x + δ, m ← β m + (x - W z)/γ, x⁺ = x - γ m",
          .source = "DecentLaM, Yuan et al. 2021, arXiv 2104.11981, algorithm 2",
          .messages = {.republishes = true},
          .timing = {.publish_point = PublishPoint::after_step},
          .topology = {.mixing = MixingRequirement::symmetric},
          .memory = {.vectors = 2},
          .step = {.needs_learning_rate = true, .own_momentum = true},
          .parameters = fmt::format("momentum={}", options.momentum)};
}

Rule decentlam(const DecentLamOptions& options) {
  require_decay("decentlam", "momentum", options.momentum);
  return elementwise(DecentLam{{}, options});
}

const RuleEntry entries::decentlam{[](ParameterReader& reader) {
  DecentLamOptions options;
  reader.read("momentum", options.momentum);
  return algorithm::decentlam(options);
}};

}  // namespace fast::algorithm
