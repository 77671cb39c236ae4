#include "serve/split.hpp"

#include <cmath>

#include "core/text.hpp"
#include "options/value.hpp"

namespace fast::serve {
namespace {

/// "old:0.9"
std::optional<double> share_in(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.substr(name.size(), 1) != ":") return std::nullopt;
  double share = 0;
  if (!reads(text.substr(name.size() + 1), share)) return std::nullopt;
  if (!(share >= 0 && share <= 1)) return std::nullopt;
  return share;
}

}  // namespace

std::optional<Split> read_split(std::string_view text) {
  const std::size_t equal = text.find('='), comma = text.find(',');
  if (equal == 0 || equal == std::string_view::npos || comma == std::string_view::npos ||
      comma < equal) {
    return std::nullopt;
  }
  const auto first = text.substr(equal + 1, comma - equal - 1), second = text.substr(comma + 1);
  const bool in_order = first.starts_with("old");
  const auto old_share = share_in(in_order ? first : second, "old");
  const auto new_share = share_in(in_order ? second : first, "new");
  if (!old_share || !new_share || std::abs(*old_share + *new_share - 1) > 1e-9) return std::nullopt;
  return Split{std::string(text.substr(0, equal)), *new_share};
}

bool is_for_new(std::uint64_t number, double share) {
  // A share as it is written, 0.1, is a little off as a binary number; a sum is not to fall below
  // a whole number by that.
  const auto given = [share](std::uint64_t requests) {
    return std::floor(static_cast<double>(requests) * share + 1e-9);
  };
  return given(number + 1) > given(number);
}

}  // namespace fast::serve
