// NoLoCo: what an outer step does to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "algorithm/init_reference.hpp"
#include "algorithm/outer.hpp"

namespace fast::algorithm {

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
