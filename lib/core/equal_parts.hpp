// A vector in consecutive parts of nearly equal size.
#pragma once

#include <cstdint>

namespace fast {

/// The first element of `part`, of a vector of `elements` in `parts` parts. Part `parts` would
/// begin behind the last element.
constexpr std::uint64_t part_begin(std::uint64_t elements, std::uint64_t parts,
                                   std::uint64_t part) {
  return part * elements / parts;
}

}  // namespace fast
