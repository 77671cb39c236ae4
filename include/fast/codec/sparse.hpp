// Vectors that are mostly zeros: the count of entries, their indices in ascending order, their
// values. Entries are exact; what is 0 is not sent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fast::codec {

/// How many entries there is room for, and how long a value is: 4 (float) or 8 (double) bytes.
struct SparseShape {
  std::size_t capacity = 0;
  std::size_t value_bytes = sizeof(float);
  std::size_t size_bytes() const;
};

/// Writes one vector, block by block in ascending order.
class SparseWriter {
 public:
  SparseWriter() = default;
  /// `vector` has room for shape.size_bytes() and is aligned to 8.
  SparseWriter(const SparseShape& shape, std::byte* vector);

  /// Those of the elements [first, first + count) that are not 0. Throws Error(internal) when there
  /// is no more room.
  void append(const float* values, std::uint64_t first, std::size_t count);
  void append(const double* values, std::uint64_t first, std::size_t count);

 private:
  template <class T>
  void append_any(const T* values, std::uint64_t first, std::size_t count);

  SparseShape shape_;
  std::byte* vector_ = nullptr;
  std::uint64_t entries_ = 0;
};

/// The elements [first, first + count) of a vector, zeros included.
void decode_sparse(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                   std::size_t count, float* to);
void decode_sparse(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                   std::size_t count, double* to);

}  // namespace fast::codec
