// Suggestions for names that are misspelled.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast {

/// The name that `wanted` probably means: the one with the fewest letters inserted, removed,
/// replaced or swapped, at most a third of them, or else the first that begins with `wanted`.
std::optional<std::string_view> closest(std::string_view wanted,
                                        const std::vector<std::string_view>& names);

/// "; did you mean \"ring\"?", or nothing when no name is close.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& names);

}  // namespace fast
