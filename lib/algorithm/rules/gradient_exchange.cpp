#include "algorithm/rules/gradient_exchange.hpp"
#include "algorithm/row.hpp"

namespace fast::algorithm {

Declaration GradientExchange::declare() {
  return {.name = "gradient_exchange",
          .summary = "x_i + δ_i + Σ_j δ_j over the neighbors; historical, for comparison",
          .source = "FAST, Viviani 2019",
          .publish_point = PublishPoint::after_step,
          .delivery = Delivery::every,
          .state_vectors = 1,
          .mixing = Mixing::unit,
          .publishes_weights_apart = true,
          .own = Own::message,
          .why_synchronous = "every step must be added exactly once"};
}

Rule gradient_exchange() { return elementwise(GradientExchange{}); }

const Row rows::gradient_exchange{[](ParameterReader&) { return algorithm::gradient_exchange(); }};

}  // namespace fast::algorithm
