// The codecs of messages between sites, by their names.
#pragma once

#include <fast/codec/codec.hpp>

#include <optional>
#include <string_view>

#include "core/contains.hpp"
#include "options/value.hpp"

namespace fast {

/// A user may also choose sparse=FRACTION.
inline constexpr std::string_view site_codecs[] = {"identity", "bf16", "fp16",
                                                   "int8",     "int4", "int2"};

struct SiteCodec {
  codec::Kind kind = codec::Kind::identity;
  double fraction = 1;  ///< of Kind::sparse: above 0 and below 1
};

/// None: sites take no such codec.
inline std::optional<SiteCodec> site_codec(std::string_view name) {
  constexpr std::string_view sparse = "sparse=";
  if (contains(site_codecs, name)) return SiteCodec{codec::by_name(name).kind};
  SiteCodec result{codec::Kind::sparse};
  const bool is_sparse =
      name.starts_with(sparse) &&
      options::number<double>({.low = 0, .high = 1, .low_counts = false})
              .parse(name.substr(sparse.size()), result.fraction) == options::Fit::good;
  return is_sparse ? std::optional(result) : std::nullopt;
}

}  // namespace fast
