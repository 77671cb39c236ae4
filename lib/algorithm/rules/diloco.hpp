// DiLoCo: what an outer step does to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/init_reference.hpp"
#include "algorithm/outer.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: 2P of state. Bytes: P a neighbor every `period` steps; N-1 neighbors.
/// State: φ, and the outer momentum m.
/// Workers send θ, not θ - φ: if one dies while others read it, their φ differ, and the next outer
/// steps bring them together again, as each goes `rate` of the way from its own φ to one mean.
struct DiLoCo {
  using Arithmetic = DiLoCo;

  DilocoOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      block.payload[0][e] = block.current[e] - (options.changes ? block.state[0][e] : T{0});
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    // The mean is that of the workers present: their weights W_ij = 1/N sum to this.
    const T present = static_cast<T>(block.info.self_weight + block.info.neighbor_weight);
    const T eta = static_cast<T>(options.rate), beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T phi = block.state[0][e];
      const T mean = block.own[0][e] + block.pull[0][e] / present;
      const T change = options.changes ? -mean : phi - mean;
      const T m = beta * block.state[1][e] + change;
      const T next = phi - eta * (options.nesterov ? change + beta * m : m);
      block.state[0][e] = next;
      block.state[1][e] = m;
      block.current[e] = blended(options.blend, block.current[e], next);
    }
  }
};

}  // namespace fast::algorithm
