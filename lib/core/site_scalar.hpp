// Names of the scalars of sites: "site/reads", and of another site "site/of/oslo/round".
#pragma once

#include <optional>
#include <string_view>

namespace fast {

inline constexpr std::string_view site_scalars = "site/", other_site_scalars = "site/of/";

/// What a site knows of another one. The parts are those of the name.
struct OtherSiteScalar {
  std::string_view site, what;
};

/// None: the scalar is of something else.
inline std::optional<OtherSiteScalar> other_site_scalar(std::string_view name) {
  if (!name.starts_with(other_site_scalars)) return std::nullopt;
  name.remove_prefix(other_site_scalars.size());
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return std::nullopt;
  return OtherSiteScalar{name.substr(0, slash), name.substr(slash + 1)};
}

}  // namespace fast
