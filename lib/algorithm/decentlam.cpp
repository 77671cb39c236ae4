#include <fast/algorithm/rules.hpp>

#include "algorithm/checks.hpp"

namespace fast::algorithm {
namespace {

/// Memory: 2P of state. Bytes: P a neighbour.
/// State: where the worker stood, and m.
struct DecentLam {
  DecentLamOptions options;

  Declaration declare() const {
    return {.name = "decentlam",
            .summary = "z = x + δ, m ← β m + (x - W z)/γ, x⁺ = x - γ m",
            .source = "DecentLaM, Yuan et al. 2021, arXiv 2104.11981, algorithm 2",
            .publish_point = PublishPoint::after_step,
            .state_vectors = 2,
            .mixing = Mixing::symmetric,
            .republishes = true,
            .needs_learning_rate = true,
            .parameters = fmt::format("momentum={}", options.momentum)};
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
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T beta = static_cast<T>(options.momentum);
    const T rate = static_cast<T>(block.info.learning_rate);
    const T inverse_rate = static_cast<T>(1 / block.info.learning_rate);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.state[0][e];
      const T mixed = block.own[0][e] + block.pull[0][e];
      const T m = beta * block.state[1][e] + inverse_rate * (x - mixed);
      const T next = x - rate * m;
      block.state[1][e] = m;
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

}  // namespace

std::unique_ptr<Algorithm> decentlam(const DecentLamOptions& options) {
  require_decay("decentlam", "momentum", options.momentum);
  return std::make_unique<Elementwise<DecentLam>>(DecentLam{options});
}

}  // namespace fast::algorithm
