// What rules share that remember where a worker stood.
#pragma once

#include <fast/algorithm/algorithm.hpp>

#include "core/host_device.hpp"

namespace fast::algorithm {

/// State 0 is where the worker stands, state 1, which steps and combinations build up, is empty.
template <class T>
FAST_HOST_DEVICE void init_reference(const Block<T>& block) {
  for (std::size_t e = 0; e < block.count; ++e) {
    block.state[0][e] = block.current[e];
    block.state[1][e] = 0;
  }
}

}  // namespace fast::algorithm
