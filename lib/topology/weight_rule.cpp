#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/topology/weight_rule.hpp>

#include "core/closest.hpp"

namespace fast {
namespace {
constexpr std::array<std::string_view, 5> names = {"metropolis", "uniform_rows", "uniform_columns",
                                                   "given", "automatic"};
}

std::string_view name(WeightRule rule) noexcept { return names[static_cast<std::size_t>(rule)]; }

WeightRule weight_rule_by_name(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  require(found != names.end(), ErrorKind::argument,
          "weights: there is no rule \"{}\"; choose from {}{}", name, fmt::join(names, ", "),
          did_you_mean(name, {names.begin(), names.end()}));
  return static_cast<WeightRule>(found - names.begin());
}

}  // namespace fast
