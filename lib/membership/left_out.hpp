// Rounds of a seat in which nobody trained there.
#pragma once

#include <cstdint>
#include <vector>

#include "membership/rank_map.hpp"

namespace fast::membership {

/// From `begin` to before `end`.
struct RoundSpan {
  std::int64_t begin = 0, end = 0;
  bool operator==(const RoundSpan&) const = default;
};

/// Rounds of that seat that were left out before its last holder but one began, and that spares
/// have not made up for. They make up for the first ones first.
std::vector<RoundSpan> left_out_before(const RankMap& map, int seat);

}  // namespace fast::membership
