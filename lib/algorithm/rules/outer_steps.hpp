// What rules share that make an outer step after some local ones.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// The weights from which the next local steps start: those of the outer step, or a blend of them
/// and the local weights.
template <class T>
FAST_HOST_DEVICE T blended(double blend, T local, T outer) {
  const T share = static_cast<T>(blend);
  return blend == 0 ? outer : share * local + (1 - share) * outer;
}

// DiLoCo: what an outer step does to each element.

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

// NoLoCo: what an outer step does to each element.

/// Memory: 2P of state. Bytes: P every `period` steps.
/// State: φ, and the outer momentum m.
struct NoLoCo : WeightsPublished {
  using Arithmetic = NoLoCo;

  NolocoOptions options;

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    init_reference(block);
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T a = static_cast<T>(options.rate), beta = static_cast<T>(options.momentum);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T phi = block.state[0][e];
      const T m = beta * block.state[1][e] + a * (block.own[0][e] + block.pull[0][e] - phi);
      const T next = phi + m;
      block.state[0][e] = next;
      block.state[1][e] = m;
      block.current[e] = blended(options.blend, block.current[e], next);
    }
  }
};

}  // namespace fast::algorithm
