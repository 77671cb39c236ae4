// D²: what a step and a combination do to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: P of state. Bytes: P a neighbor.
/// State: x - x⁻ - δ⁻, which is what the last combination added to the worker's own step. The sum
/// of the pulls is the same number. The difference of two rounded weights would gather their
/// rounding errors, and these would move the mean in every round from then on.
struct D2 {
  using Arithmetic = D2;

  D2Options options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = 0;
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] + block.state[0][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.state[0][e] += block.pull[0][e];
      block.current[e] += block.state[0][e];
    }
  }
};

}  // namespace fast::algorithm
