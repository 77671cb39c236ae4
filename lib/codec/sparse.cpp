#include <algorithm>
#include <cstring>
#include <fast/codec/sparse.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

#include "codec/coded_entries.hpp"
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
void decode_exact(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                  std::size_t count, T* to) {
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

template <class T>
void decode_coded(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                  std::size_t count, T* to) {
  constexpr std::uint64_t chunk_elements = CodedEntries::chunk_elements;
  const CodedEntries entries(shape);
  CodedValues values(shape, vector);
  for (std::uint64_t c = first / chunk_elements; c * chunk_elements < first + count; ++c) {
    const std::uint64_t end = std::min(entries.read_before(vector, c + 1), values.total());
    for (std::uint64_t entry = entries.read_before(vector, c); entry < end; ++entry) {
      const std::uint64_t element = c * chunk_elements + entries.read_place(vector, entry);
      if (element >= first + count) break;
      if (element >= first) to[element - first] = static_cast<T>(values(entry));
    }
  }
}

template <class T>
void decode_any(const SparseShape& shape, const std::byte* vector, std::uint64_t first,
                std::size_t count, T* to) {
  std::fill_n(to, count, T{0});
  if (shape.coded()) return decode_coded(shape, vector, first, count, to);
  decode_exact(shape, vector, first, count, to);
}

}  // namespace

std::size_t SparseShape::size_bytes() const {
  if (coded()) return CodedEntries(*this).size_bytes();
  return round_up(values_offset(*this) + capacity * value_bytes, sizeof(double));
}

SparseWriter::SparseWriter(const SparseShape& shape, std::byte* vector,
                           std::optional<std::uint32_t> rounding_key)
    : shape_(shape), vector_(vector), rounding_key_(rounding_key) {
  if (shape_.coded()) {
    CodedEntries(shape_).write_before(vector_, CodedEntries(shape_).chunks(), 0);
  } else {
    std::memcpy(vector_, &entries_, sizeof entries_);
  }
}

void SparseWriter::require_room() const {
  require(entries_ < shape_.capacity, ErrorKind::internal,
          "codec sparse: more than the {} entries that the rule declared are not 0",
          shape_.capacity);
}

template <class T>
void SparseWriter::append_any(const T* values, std::uint64_t first, std::size_t count) {
  if (shape_.coded()) return append_coded(values, first, count);
  append_exact(values, first, count);
}

template <class T>
void SparseWriter::append_exact(const T* values, std::uint64_t first, std::size_t count) {
  auto* indices = reinterpret_cast<std::uint32_t*>(vector_ + indices_offset);
  std::byte* stored = vector_ + values_offset(shape_);
  for (std::size_t e = 0; e < count; ++e) {
    if (values[e] == T{0}) continue;
    require_room();
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

template <class T>
void SparseWriter::append_coded(const T* values, std::uint64_t first, std::size_t count) {
  const CodedEntries entries(shape_);
  constexpr std::uint64_t chunk_elements = CodedEntries::chunk_elements;
  for (std::size_t e = 0; e < count; ++e) {
    const std::uint64_t element = first + e;
    if (element % chunk_elements == 0) {
      entries.write_before(vector_, element / chunk_elements, entries_);
    }
    if (values[e] == T{0}) continue;
    require_room();
    entries.write_place(vector_, entries_, element % chunk_elements);
    group_[entries_ % group_elements] = static_cast<float>(values[e]);
    if (++entries_ % group_elements == 0) encode_last_group();
  }
  // So that what is written is whole after each block; a group that grows is coded again.
  if (entries_ % group_elements != 0) encode_last_group();
  entries.write_before(vector_, (first + count + chunk_elements - 1) / chunk_elements, entries_);
}

void SparseWriter::encode_last_group() {
  const std::uint64_t first = (entries_ - 1) / group_elements * group_elements;
  encode(shape_.code, group_.data(), entries_ - first,
         vector_ + CodedEntries(shape_).code_offset(first), {rounding_key_, first});
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
