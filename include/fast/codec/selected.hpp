// Vectors of which a part travels that all workers know from the number of the combination: that
// number, then the values of the part in ascending order, without indices. Values are exact.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fast::codec {

/// Which entries travel in which combination.
struct SelectedShape {
  std::uint64_t elements = 0;  ///< of the model
  /// Above 0: of each run of so many entries one, drawn at random from seed and combination. 0:
  /// part (combination mod parts) of equal parts [p·elements/parts, (p+1)·elements/parts).
  std::uint64_t run = 0;
  std::uint64_t parts = 1;
  std::uint64_t seed = 1;
  std::size_t value_bytes = sizeof(float);  ///< or of double

  std::uint64_t capacity() const;  ///< most entries of a message
  std::size_t size_bytes() const;  ///< of a message, a multiple of 8
  std::size_t offset_bytes(std::uint64_t entry) const {
    return sizeof(std::int64_t) + entry * value_bytes;
  }

  /// Entries of the message.
  struct Range {
    std::uint64_t first = 0, count = 0;
  };
  /// A range in which all entries of the elements [first, first + count) are. count > 0.
  Range range(std::int64_t combination, std::uint64_t first, std::size_t count) const;
  /// The element that travels as an entry.
  std::uint64_t element(std::int64_t combination, std::uint64_t entry) const;
};

/// The number of the combination, at the message's beginning.
void write_combination(std::byte* vector, std::int64_t combination);
std::int64_t read_combination(const std::byte* vector);

/// Writes those of the elements [first, first + count) that travel.
template <class T>
void encode_selected(const SelectedShape& shape, std::int64_t combination, const T* values,
                     std::uint64_t first, std::size_t count, std::byte* vector);
/// Writes those of the elements [first, first + count) that have traveled over `to`. `stored`:
/// where the entries of range(combination, first, count) are.
template <class T>
void decode_selected(const SelectedShape& shape, std::int64_t combination, const std::byte* stored,
                     std::uint64_t first, std::size_t count, T* to);

}  // namespace fast::codec
