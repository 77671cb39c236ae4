#include <algorithm>
#include <cstring>
#include <fast/codec/sparse.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

#include "codec/record.hpp"

namespace fast::codec {
namespace {

constexpr std::size_t indices_offset = sizeof(std::uint64_t);

std::size_t values_offset(const SparseShape& shape) {
  return indices_offset + round_up(shape.capacity * sizeof(std::uint32_t), sizeof(double));
}

double value_at(const SparseShape& shape, const std::byte* vector, std::uint64_t entry) {
  const std::byte* values = vector + values_offset(shape);
  if (shape.value_bytes == sizeof(double)) return reinterpret_cast<const double*>(values)[entry];
  return static_cast<double>(reinterpret_cast<const float*>(values)[entry]);
}

template <class T>
void decode_any(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                std::size_t count, T* to) {
  std::fill_n(to, count, T{0});
  std::uint64_t stored;
  std::memcpy(&stored, vector, sizeof stored);
  const auto* begin = reinterpret_cast<const std::uint32_t*>(vector + indices_offset);
  const auto* end = begin + std::min<std::uint64_t>(stored, shape.capacity);
  const auto* at = std::lower_bound(begin, end, first);
  for (; at != end; ++at) {
    const std::uint64_t element = *at - first;  // loaded once: its writer may have gone on
    if (element >= count) break;
    to[element] = static_cast<T>(value_at(shape, vector, static_cast<std::uint64_t>(at - begin)));
  }
}

}  // namespace

std::size_t SparseShape::size_bytes() const {
  return round_up(values_offset(*this) + capacity * value_bytes, sizeof(double));
}

SparseWriter::SparseWriter(const SparseShape& shape, std::byte* vector)
    : shape_(shape), vector_(vector) {
  std::memcpy(vector_, &entries_, sizeof entries_);
}

template <class T>
void SparseWriter::append_any(const T* values, std::uint64_t first, std::size_t count) {
  auto* indices = reinterpret_cast<std::uint32_t*>(vector_ + indices_offset);
  std::byte* stored = vector_ + values_offset(shape_);
  for (std::size_t e = 0; e < count; ++e) {
    if (values[e] == T{0}) continue;
    require(entries_ < shape_.capacity, ErrorKind::internal,
            "codec sparse: more than the {} entries that the rule declared are not 0",
            shape_.capacity);
    indices[entries_] = static_cast<std::uint32_t>(first + e);
    if (shape_.value_bytes == sizeof(double)) {
      reinterpret_cast<double*>(stored)[entries_] = static_cast<double>(values[e]);
    } else {
      reinterpret_cast<float*>(stored)[entries_] = static_cast<float>(values[e]);
    }
    ++entries_;
  }
  std::memcpy(vector_, &entries_, sizeof entries_);
}

void SparseWriter::append(const float* values, std::uint64_t first, std::size_t count) {
  append_any(values, first, count);
}
void SparseWriter::append(const double* values, std::uint64_t first, std::size_t count) {
  append_any(values, first, count);
}

void decode_sparse(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                   std::size_t count, float* to) {
  decode_any(shape, vector, first, count, to);
}
void decode_sparse(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                   std::size_t count, double* to) {
  decode_any(shape, vector, first, count, to);
}

// Entries have functions of their own (fast/codec/sparse.hpp): there are no runs.
const Record records::sparse{.for_users = false};

}  // namespace fast::codec
