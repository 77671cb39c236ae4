// What plain averaging rules share: the weights are published as they stand, and the neighbors'
// pull is added. Other rules share the first.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// A rule derives from this if it publishes the weights as they stand.
struct WeightsPublished {
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
};

/// A rule derives from this if it also adds the pull of its neighbors.
struct Averaging : WeightsPublished {
  using Arithmetic = Averaging;

  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

}  // namespace fast::algorithm
