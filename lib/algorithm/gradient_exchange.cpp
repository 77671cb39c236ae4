#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

/// Memory: P of state, slots of 2P (one P for the mean model). Bytes: P a neighbour.
/// State: where the worker stood.
struct GradientExchange {
  static Declaration declare() {
    return {.name = "gradient_exchange",
            .summary = "x_i + δ_i + Σ_j δ_j over the neighbours; historical, for comparison",
            .source = "FAST, Viviani 2019",
            .publish_point = PublishPoint::after_step,
            .delivery = Delivery::every,
            .state_vectors = 1,
            .mixing = Mixing::unit,
            .publishes_weights_apart = true,
            .own = Own::message,
            .why_synchronous = "every step must be added exactly once"};
  }
  template <class T>
  void start(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - block.state[0][e];
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T neighbors = static_cast<T>(block.info.neighbor_weight);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.current[e] + block.pull[0][e] + neighbors * block.own[0][e];
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

}  // namespace

std::unique_ptr<Algorithm> gradient_exchange() {
  return std::make_unique<Elementwise<GradientExchange>>();
}

}  // namespace fast::algorithm
