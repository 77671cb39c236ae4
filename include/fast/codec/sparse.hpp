// Vectors that are mostly zeros: entries in ascending order of their indices. Zeros are not sent.
// Exact entries are their count, indices of 4 bytes, and the values. Coded entries are, for each
// chunk of the vector, the number of entries before it; then the place of each entry in its chunk,
// in 12 bits; then the values in the codec's code. The groups of the code, and their scales,
// consist of entries.
#pragma once

#include <fast/codec/block.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

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

}  // namespace fast::codec
