#include "core/registry.hpp"

#include <fmt/ranges.h>

#include "core/closest.hpp"

namespace fast {

void fail_unknown(ErrorKind kind, std::string_view text, std::string_view name,
                  std::vector<std::string_view> names, std::span<const Alias> aliases) {
  const std::string listed = fmt::format("{}", fmt::join(names, ", "));
  for (const Alias& alias : aliases) names.push_back(alias.name);
  throw Error(kind, fmt::format(fmt::runtime(text), name, listed) + did_you_mean(name, names));
}

}  // namespace fast
