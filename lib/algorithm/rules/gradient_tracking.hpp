// Gradient tracking: what a step and a combination do to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/standing.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: 2P of state, slots of 2P. Bytes: 2P a neighbor.
/// At staleness above 0 x travels as it is and y as running sums, so that the trackers' sum and
/// what is on its way remain that of the steps: ASY-SONATA (Tian, Sun & Scutari 2018, arXiv
/// 1803.10359), with slots and messages of 8 bytes an element. State: where the worker stood, and
/// W_{t-1} y_{t-1} - δ_{t-1}, so that y_t is that plus δ_t.
struct GradientTracking {
  using Arithmetic = GradientTracking;

  static Declaration declare();

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    stand_still(block);
  }
  template <class T>
  FAST_HOST_DEVICE void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.state[0][e];
      block.payload[0][e] = x;
      block.payload[1][e] = block.state[1][e] + (block.current[e] - x);
    }
  }
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.own[0][e], y = block.own[1][e];
      const T delta = block.current[e] - x;
      const T next = x + block.pull[0][e] + y;
      block.state[1][e] = y + block.pull[1][e] - delta;
      block.state[0][e] = next;
      block.current[e] = next;
    }
  }
};

}  // namespace fast::algorithm
