// Where the parts of a message of coded entries lie. All fields are read with bounds: its writer
// may have gone on.
#pragma once

#include <algorithm>
#include <cstring>
#include <fast/codec/sparse.hpp>
#include <fast/core/memory.hpp>

namespace fast::codec {

class CodedEntries {
 public:
  static constexpr std::uint64_t chunk_elements = 4096;  ///< places in it have 12 bits

  explicit CodedEntries(const SparseShape& shape) : shape_(shape) {}

  std::size_t size_bytes() const { return round_up(code_offset(shape_.capacity), sizeof(double)); }
  std::uint64_t chunks() const { return (shape_.elements + chunk_elements - 1) / chunk_elements; }

  /// Entries before a chunk; of chunks(): all entries.
  void write_before(std::byte* vector, std::uint64_t chunk, std::uint64_t entries) const {
    const auto stored = static_cast<std::uint32_t>(entries);
    std::memcpy(vector + chunk * sizeof stored, &stored, sizeof stored);
  }
  std::uint64_t read_before(const std::byte* vector, std::uint64_t chunk) const {
    std::uint32_t stored;
    std::memcpy(&stored, vector + chunk * sizeof stored, sizeof stored);
    return std::min<std::uint64_t>(stored, shape_.capacity);
  }

  /// Two places in three bytes, the first in the lower bits. In the order of the entries.
  void write_place(std::byte* vector, std::uint64_t entry, std::uint64_t place) const {
    std::byte* at = vector + place_offset(entry);
    if (entry % 2 == 0) {
      at[0] = static_cast<std::byte>(place & 255);
      at[1] = static_cast<std::byte>(place >> 8);
    } else {
      at[1] |= static_cast<std::byte>((place & 15) << 4);
      at[2] = static_cast<std::byte>(place >> 4);
    }
  }
  std::uint64_t read_place(const std::byte* vector, std::uint64_t entry) const {
    const std::byte* at = vector + place_offset(entry);
    const auto middle = std::to_integer<std::uint64_t>(at[1]);
    if (entry % 2 == 0) return std::to_integer<std::uint64_t>(at[0]) | (middle & 15) << 8;
    return middle >> 4 | std::to_integer<std::uint64_t>(at[2]) << 4;
  }

  /// Of the values from an entry on, which is a multiple of group_elements.
  std::size_t code_offset(std::uint64_t entry) const {
    const std::size_t places_end = places_offset() + (3 * shape_.capacity + 1) / 2;
    return round_up(places_end, sizeof(float)) + coded_bytes(shape_.code, entry);
  }

 private:
  std::size_t places_offset() const { return (chunks() + 1) * sizeof(std::uint32_t); }
  std::size_t place_offset(std::uint64_t entry) const { return places_offset() + entry / 2 * 3; }

  const SparseShape& shape_;
};

/// The values of entries, decoded by groups. Entries are asked for in ascending order.
class CodedValues {
 public:
  CodedValues(const SparseShape& shape, const std::byte* vector)
      : shape_(shape), entries_(shape), vector_(vector) {
    total_ = entries_.read_before(vector, entries_.chunks());
  }
  std::uint64_t total() const { return total_; }
  /// entry < total().
  float operator()(std::uint64_t entry) {
    if (entry >= end_ || entry < begin_) decode_group(entry / group_elements * group_elements);
    return values_[entry - begin_];
  }

 private:
  void decode_group(std::uint64_t first) {
    begin_ = first;
    end_ = std::min<std::uint64_t>(first + group_elements, total_);
    decode(shape_.code, vector_ + entries_.code_offset(first), end_ - begin_, values_.data());
  }

  const SparseShape& shape_;
  CodedEntries entries_;
  const std::byte* vector_;
  std::uint64_t total_ = 0, begin_ = 0, end_ = 0;
  std::array<float, group_elements> values_{};
};

}  // namespace fast::codec
