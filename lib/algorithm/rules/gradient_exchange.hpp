// Steps added to the neighbors': what that does to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: P of state, slots of 2P (one P for the mean model). Bytes: P a neighbor.
/// State: where the worker stood.
struct GradientExchange {
  using Arithmetic = GradientExchange;

  static RuleTraits traits();

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - block.state[0][e];
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T neighbors = static_cast<T>(block.info.neighbor_weight);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.current[e] + block.pull[0][e] + neighbors * block.own[0][e];
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

}  // namespace fast::algorithm
