// Blocks of a model that a round above staleness 0 reads from one publication each.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "combine/segment_sweep.hpp"

namespace fast::testing {

/// True if the elements of each block are equal, or differ by less than `slack`: if workers begin
/// with equal elements and treat them alike, an element that differs is of another publication.
template <class T>
bool has_whole_blocks(std::span<const T> x, T slack = 0) {
  for (std::size_t e = 0; e < x.size(); ++e) {
    const T first = x[e - e % combine::checked_elements];
    if (x[e] != first && !(std::abs(x[e] - first) < slack)) return false;
  }
  return true;
}

}  // namespace fast::testing
