#pragma once

#include <algorithm>
#include <ranges>

namespace fast {

/// std::ranges::contains of C++23.
template <std::ranges::input_range Range, class Value>
constexpr bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

}  // namespace fast
