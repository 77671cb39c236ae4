#include <fast/algorithm/rules.hpp>

#include "algorithm/checks.hpp"

namespace fast::algorithm {
namespace {

/// Memory: 2P of state. Bytes: P a neighbour.
/// State: where the worker stood, and m.
struct QuasiGlobalMomentum {
  QuasiGlobalMomentumOptions options;

  Declaration declare() const {
    return {.name = "quasi_global_momentum",
            .summary = "x½ = x - γ(β m + g), x⁺ = W x½, m ← μ m + (1-μ)(x - x⁺)/γ",
            .source = "QG-DSGDm, Lin et al. 2021, arXiv 2102.04761, algorithm 1",
            .publish_point = PublishPoint::after_step,
            .state_vectors = 2,
            .republishes = true,
            .needs_learning_rate = true,
            .parameters = fmt::format("momentum={} mu={}", options.momentum, options.mu)};
  }
  template <class T>
  void start(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[0][e] = block.current[e];
      block.state[1][e] = 0;
    }
  }
  template <class T>
  void publish(const Block<T>& block) {
    const T factor = static_cast<T>(block.info.learning_rate * options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - factor * block.state[1][e];
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T mu = static_cast<T>(options.mu);
    const T factor = static_cast<T>((1 - options.mu) / block.info.learning_rate);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.own[0][e] + block.pull[0][e];
      block.state[1][e] = mu * block.state[1][e] + factor * (block.state[0][e] - next);
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

}  // namespace

std::unique_ptr<Algorithm> quasi_global_momentum(const QuasiGlobalMomentumOptions& options) {
  require_decay("quasi_global_momentum", "momentum", options.momentum);
  require_decay("quasi_global_momentum", "mu", options.mu);
  return std::make_unique<Elementwise<QuasiGlobalMomentum>>(QuasiGlobalMomentum{options});
}

}  // namespace fast::algorithm
