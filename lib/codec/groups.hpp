// Codes of few bits in groups of elements: the scales of a group, then its codes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "codec/record.hpp"

namespace fast::codec {

/// The places of groups in a coded tensor. The last group may have fewer elements than the others.
template <std::size_t scales_bytes, std::size_t codes_per_byte>
struct Groups {
  static constexpr std::size_t code_bytes(std::size_t count) {
    return (count + codes_per_byte - 1) / codes_per_byte;
  }
  static constexpr std::size_t coded_bytes(std::size_t count) {
    return code_bytes(count) + (count + group_elements - 1) / group_elements * scales_bytes;
  }
  /// Calls visit(first element, number of elements, pointer to the scales) for each group.
  template <class Byte, class Visit>
  static void for_each(Byte* coded, std::size_t count, const Visit& visit) {
    for (std::size_t first = 0; first < count; first += group_elements) {
      visit(first, std::min(group_elements, count - first), coded);
      coded += scales_bytes + code_bytes(group_elements);
    }
  }
};

}  // namespace fast::codec
