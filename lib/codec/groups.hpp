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

/// The record of a codec that codes each group on its own: encode_group(values, count, to) and
/// decode_group(from, count, values).
template <class Places, auto encode_group, auto decode_group>
constexpr Record record_of_groups() {
  Record record{.feeds_back = true, .by_tensor = true, .coded_bytes = Places::coded_bytes};
  record.encode = [](const float* from, std::size_t count, std::byte* to, const Rounding&) {
    Places::for_each(to, count, [&](std::size_t first, std::size_t length, std::byte* group) {
      encode_group(from + first, length, group);
    });
  };
  record.decode = [](const std::byte* from, std::size_t count, float* to) {
    Places::for_each(from, count,
                     [&](std::size_t first, std::size_t length, const std::byte* group) {
                       decode_group(group, length, to + first);
                     });
  };
  return record;
}

}  // namespace fast::codec
