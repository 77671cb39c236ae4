// sparta: what averaging a random part of the entries does to each element.
#pragma once

#include <cmath>
#include <fast/algorithm/rules.hpp>

#include "algorithm/averaging.hpp"
#include "core/saturate.hpp"

namespace fast::algorithm {

/// Memory: P in a slot for the mean model. Bytes: pP a neighbor.
/// Of each run of 1/p entries one travels.
struct Sparta : WeightsPublished {
  SpartaOptions options;

  RuleTraits traits() const;
  Selection selection() const {
    return {Selection::Kind::one_of_each_run,
            saturate<std::int64_t>(std::round(1 / options.fraction)),
            static_cast<std::uint64_t>(options.seed)};
  }

  template <class T>
  void combine(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

}  // namespace fast::algorithm
