// A²CiD²: what a combination does to each element.
#pragma once

#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "core/host_device.hpp"

namespace fast::algorithm {

/// Memory: P of state. Bytes: P a round in which the worker has a partner.
/// State: x̃ - x. Steps move both alike and leave it as it is. It sums to 0 over all workers.
struct A2cid2 : WeightsPublished {
  using Arithmetic = A2cid2;

  A2cid2Options options;
  double further = 0;  ///< 2 α̃ - 1: how much further than x the second copy goes to the partner
  double keeps = 1;    ///< e^(-2η): what mixing leaves of x̃ - x

  RuleTraits traits() const;

  template <class T>
  FAST_HOST_DEVICE void start(const Block<T>& block) {
    clear_state(block, 0);
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull);
  template <class T>
  FAST_HOST_DEVICE void combine(const Block<T>& block) {
    const T more = static_cast<T>(further), kept = static_cast<T>(keeps);
    const T mixed = static_cast<T>((1 - keeps) / 2);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T apart = block.state[0][e] + more * block.pull[0][e];
      block.current[e] += block.pull[0][e] + mixed * apart;
      block.state[0][e] = kept * apart;
    }
  }
};

}  // namespace fast::algorithm
