#include "algorithm/rules/gradient_exchange.hpp"
#include "algorithm/rule_entry.hpp"

namespace fast::algorithm {

RuleTraits GradientExchange::traits() {
  return {.name = "gradient_exchange",
          .summary = "x_i + δ_i + Σ_j δ_j over the neighbors; historical, for comparison",
          .source = "FAST, Viviani 2019",
          .messages = {.delivery = Delivery::every, .weights_apart = true, .own = Own::message},
          .timing = {.publish_point = PublishPoint::after_step,
                     .why_synchronous = "every step must be added exactly once"},
          .topology = {.mixing = MixingRequirement::unit},
          .memory = {.vectors = 1}};
}

Rule gradient_exchange() { return elementwise(GradientExchange{}); }

const RuleEntry entries::gradient_exchange{
    [](ParameterReader&) { return algorithm::gradient_exchange(); }};

}  // namespace fast::algorithm
