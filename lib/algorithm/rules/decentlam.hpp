// DecentLaM: what a step and a combination do to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/init_reference.hpp"

namespace fast::algorithm {

/// Memory: 2P of state. Bytes: P a neighbor.
/// State: where the worker stood, and m.
struct DecentLam : WeightsPublished {
  using Arithmetic = DecentLam;

  DecentLamOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
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

}  // namespace fast::algorithm
