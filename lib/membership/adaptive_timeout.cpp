#include "membership/adaptive_timeout.hpp"

#include <algorithm>

namespace fast::membership {
namespace {
constexpr std::size_t gaps_per_pause = 100;
}

void AdaptiveTimeout::add(std::uint64_t gap) {
  if (size_ == capacity) --counts_[gaps_[next_]];
  gaps_[next_] = static_cast<std::uint8_t>(std::min(gap, longest));
  ++counts_[gaps_[next_]];
  next_ = (next_ + 1) % capacity;
  size_ = std::min(size_ + 1, capacity);
}

/// The longest gap but for the pauses.
std::uint64_t AdaptiveTimeout::usual_gap() const {
  const std::size_t pauses = std::max<std::size_t>(size_ / gaps_per_pause, 1);
  std::uint64_t gap = longest;
  for (std::size_t longer = counts_[gap]; longer <= pauses && gap > 0;) longer += counts_[--gap];
  return gap;
}

std::uint64_t AdaptiveTimeout::threshold() const {
  return std::clamp(factor * usual_gap(), floor, ceiling);
}

}  // namespace fast::membership
