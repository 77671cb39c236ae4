// Vectors that are mostly zeros: entries in ascending order of their indices. Zeros are not sent.
// Exact entries are their count, indices of 4 bytes, and the values. Coded entries are, for each
// chunk of the vector, the number of entries before it; then the place of each entry in its chunk,
// in 12 bits; then the values in the codec's code. The groups of the code, and their scales,
// consist of entries.
#pragma once

#include <fast/codec/codec.hpp>
#include <fast/core/element.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/block.hpp"

namespace fast::codec {

/// How many entries there is room for, and how they are stored.
struct SparseShape {
  std::size_t capacity = 0;
  std::size_t value_bytes = sizeof(float);  ///< of an exact value; or of double
  Kind code = Kind::identity;               ///< of the values; identity: they are exact
  std::uint64_t elements = 0;               ///< of the vector, where values are coded

  bool coded() const { return code != Kind::identity; }
  std::size_t size_bytes() const;
};

/// Writes one vector, block by block, from the first element to the last one.
class SparseWriter {
 public:
  SparseWriter() = default;
  /// `vector` has room for shape.size_bytes() and is aligned to 8. Random roundings are a function
  /// of the key and the entry.
  SparseWriter(const SparseShape& shape, std::byte* vector,
               std::optional<std::uint32_t> rounding_key = {});

  /// Those of the elements [first, first + count) that are not 0. Throws Error(internal) when there
  /// is no more room.
  void append(const float* values, std::uint64_t first, std::size_t count);
  void append(const double* values, std::uint64_t first, std::size_t count);

 private:
  template <class T>
  void append_any(const T* values, std::uint64_t first, std::size_t count);
  template <class T>
  void append_exact(const T* values, std::uint64_t first, std::size_t count);
  template <class T>
  void append_coded(const T* values, std::uint64_t first, std::size_t count);
  void require_room() const;
  void encode_last_group();

  SparseShape shape_;
  std::byte* vector_ = nullptr;
  std::optional<std::uint32_t> rounding_key_;
  std::uint64_t entries_ = 0;
  std::array<float, group_elements> group_{};  ///< the last values, where they are coded
};

/// The elements [first, first + count) of a vector, zeros included.
void decode_sparse(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                   std::size_t count, float* to);
void decode_sparse(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                   std::size_t count, double* to);

// Messages with a part of a vector. A number tells which elements travel: that of the combination,
// or one that the sender has drawn. A message has this number, then the values in ascending order
// of elements. It has no indices. Values are exact, or have 16 bits each.

/// Which entries travel in which combination.
struct SelectedShape {
  std::uint64_t elements = 0;  ///< of the model
  /// Above 0: one element travels of each run of so many elements, drawn at random from seed and
  /// combination. 0: part p = combination mod parts travels, as part_begin() divides the vector.
  std::uint64_t run = 0;
  std::uint64_t parts = 1;
  std::uint64_t seed = 1;
  bool of_changes = false;  ///< entries that do not travel are 0
  /// The code of the values: identity, bf16 or fp16.
  Kind code = Kind::identity;
  std::size_t value_bytes = sizeof(float);  ///< or of double; 2 with a code

  /// The code of the values of tensors of that type: 16-bit values travel as they are.
  Kind code_of(DType dtype) const;

  std::uint64_t capacity() const;  ///< most entries of a message
  std::size_t size_bytes() const;  ///< of a message, a multiple of 8
  std::size_t offset_bytes(std::uint64_t entry) const {
    return sizeof(std::int64_t) + entry * value_bytes;
  }

  /// Consecutive entries of a message.
  struct Range {
    std::uint64_t first = 0, count = 0;
  };
  /// A range that contains all entries of the elements [first, first + count). count > 0.
  Range range(std::int64_t combination, std::uint64_t first, std::size_t count) const;
  /// The element that travels as an entry.
  std::uint64_t element(std::int64_t combination, std::uint64_t entry) const;
};

/// Returns the code of the values in a run with that codec. It is identity unless the codec has 16
/// bits: entries that travel alone share no scale, and coded ones lie 2 bytes apart.
Kind code_of_entries(Kind codec);

/// The number of the combination is at the beginning of the message.
void write_combination(std::byte* vector, std::int64_t combination);
std::int64_t read_combination(const std::byte* vector);

/// Writes the elements of [first, first + count) that travel, in this code. Random roundings are a
/// function of the key and the entry.
template <class T>
void encode_selected(const SelectedShape& shape, Kind code, std::int64_t combination,
                     const T* values, std::uint64_t first, std::size_t count, std::byte* vector,
                     std::optional<std::uint32_t> rounding_key = {});
/// Replaces the elements of [first, first + count) that have traveled in `to`. `stored` points to
/// the entries of range(combination, first, count), which have this code.
template <class T>
void decode_selected(const SelectedShape& shape, Kind code, std::int64_t combination,
                     const std::byte* stored, std::uint64_t first, std::size_t count, T* to);

}  // namespace fast::codec
