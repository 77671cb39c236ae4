// Shares of the requests between two versions of a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fast::serve {

/// "digits=old:0.9,new:0.1"
struct Split {
  std::string model;
  double new_share = 1;  ///< in [0, 1]; the old version has the rest
};

/// The shares must add up to 1. Nothing when the text is not of that form.
std::optional<Split> read_split(std::string_view text);

/// Whether request `number` (0, 1, ...) is the new version's. Of the first n requests it gets
/// n x share, rounded down: the shares hold at any time, without a random number.
bool is_for_new(std::uint64_t number, double share);

}  // namespace fast::serve
