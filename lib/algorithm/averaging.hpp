// What plain averaging rules share: the weights are published as they stand, and the neighbors'
// pull is added. Other rules share the first.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/algorithm/rules.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

// How rules begin that keep vectors between rounds.

template <class T>
FAST_HOST_DEVICE void clear_state(const Block<T>& block, int vector) {
  for (std::size_t e = 0; e < block.count; ++e) block.state[vector][e] = 0;
}

/// State 0 is where the worker stands, state 1, which steps and combinations build up, is empty.
template <class T>
FAST_HOST_DEVICE void init_reference(const Block<T>& block) {
  for (std::size_t e = 0; e < block.count; ++e) {
    block.state[0][e] = block.current[e];
    block.state[1][e] = 0;
  }
}

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

// awc that goes a part of the way to its neighbors' average: what that does to each element.

/// Memory: none beyond the slots. Bytes: P a neighbor.
struct PartialAveraging : WeightsPublished {
  using Arithmetic = PartialAveraging;

  AwcOptions options;
  double step = 1;          ///< of this combination
  double largest_rate = 0;  ///< of the steps so far

  RuleTraits traits() const;

  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull);
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T a = static_cast<T>(step);
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += a * block.pull[0][e];
  }

  std::vector<TensorView> numbers() {
    return {view_of("awc.largest_rate", std::span(&largest_rate, 1))};
  }
};

}  // namespace fast::algorithm
