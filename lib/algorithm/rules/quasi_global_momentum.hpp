// Quasi-global momentum: what a step and a combination do to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/init_reference.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: 2P of state. Bytes: P a neighbor.
/// State: where the worker stood, and m.
struct QuasiGlobalMomentum {
  using Arithmetic = QuasiGlobalMomentum;

  QuasiGlobalMomentumOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    const T factor = static_cast<T>(block.info.learning_rate * options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - factor * block.state[1][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
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

}  // namespace fast::algorithm
