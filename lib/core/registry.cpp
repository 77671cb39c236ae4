#include "core/registry.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/text.hpp"

namespace fast {
namespace {

/// Upper case and lower case are one letter, as are - and _.
char folded(char c) { return c == '-' ? '_' : in_small_letters(c); }

/// Letters inserted, removed, replaced, or swapped with the next one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool equal = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                           folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

constexpr std::size_t shortest_beginning = 3, longest_compared = 100;

}  // namespace

std::optional<std::string_view> closest(std::string_view wanted,
                                        const std::vector<std::string_view>& names) {
  if (wanted.empty() || wanted.size() > longest_compared) return std::nullopt;
  std::optional<std::string_view> found;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t edits = distance(wanted, name);
    if (edits < least && edits < name.size()) {
      least = edits;
      found = name;
    }
  }
  if (found || wanted.size() < shortest_beginning) return found;
  const auto longer = std::ranges::find_if(names, [&](std::string_view name) {
    return distance(name.substr(0, wanted.size()), wanted) == 0;
  });
  return longer == names.end() ? found : *longer;
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& names) {
  const auto found = closest(wanted, names);
  return found ? fmt::format("; did you mean \"{}\"?", *found) : std::string();
}

void fail_unknown(ErrorKind kind, std::string_view text, std::string_view name,
                  std::vector<std::string_view> names, std::span<const Alias> aliases) {
  const std::string listed = fmt::format("{}", fmt::join(names, ", "));
  for (const Alias& alias : aliases) names.push_back(alias.name);
  throw Error(kind, fmt::format(fmt::runtime(text), name, listed) + did_you_mean(name, names));
}

}  // namespace fast
