#include "algorithm/rules/quasi_global_momentum.hpp"

#include "algorithm/checks.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits QuasiGlobalMomentum::traits() const {
  return {.name = "quasi_global_momentum",
          .summary = "x½ = x - γ(β m + g), x⁺ = W x½, m ← μ m + (1-μ)(x - x⁺)/γ",
          .source = "QG-DSGDm, Lin et al. 2021, arXiv 2102.04761, algorithm 1",
          .messages = {.republishes = true},
          .timing = {.publish_point = PublishPoint::after_step},
          .memory = {.vectors = 2},
          .step = {.needs_learning_rate = true, .own_momentum = true},
          .parameters = fmt::format("momentum={} mu={}", options.momentum, options.mu)};
}

Rule quasi_global_momentum(const QuasiGlobalMomentumOptions& options) {
  require_decay("quasi_global_momentum", "momentum", options.momentum);
  require_decay("quasi_global_momentum", "mu", options.mu);
  return elementwise(QuasiGlobalMomentum{options});
}

const RuleEntry entries::quasi_global_momentum{[](ParameterReader& reader) {
  QuasiGlobalMomentumOptions options;
  reader.read("momentum", options.momentum);
  reader.read("mu", options.mu);
  return algorithm::quasi_global_momentum(options);
}};

}  // namespace fast::algorithm
