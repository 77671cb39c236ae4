#include <algorithm>
#include <cstring>
#include <fast/codec/selected.hpp>
#include <fast/core/equal_parts.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>

#include "codec/record.hpp"

namespace fast::codec {
namespace {

std::uint64_t part_of(const SelectedShape& shape, std::int64_t combination) {
  return static_cast<std::uint64_t>(combination) % shape.parts;
}

/// visit(place among the elements, place among the entries of their range)
template <class Visit>
void for_each_entry(const SelectedShape& shape, std::int64_t combination, std::uint64_t first,
                    std::size_t count, const Visit& visit) {
  const SelectedShape::Range range = shape.range(combination, first, count);
  for (std::uint64_t k = 0; k < range.count; ++k) {
    const std::uint64_t element = shape.element(combination, range.first + k);
    if (element >= first && element - first < count) visit(element - first, k);
  }
}

}  // namespace

std::uint64_t SelectedShape::capacity() const {
  if (run > 0) return (elements + run - 1) / run;
  return (elements + parts - 1) / parts;
}

std::size_t SelectedShape::size_bytes() const {
  return round_up(offset_bytes(capacity()), sizeof(double));
}

SelectedShape::Range SelectedShape::range(std::int64_t combination, std::uint64_t first,
                                          std::size_t count) const {
  if (run > 0) return {first / run, (first + count - 1) / run - first / run + 1};
  const std::uint64_t part = part_of(*this, combination);
  const std::uint64_t part_first = part_begin(elements, parts, part);
  const std::uint64_t begin = std::max(first, part_first);
  const std::uint64_t end = std::min(first + count, part_begin(elements, parts, part + 1));
  if (begin >= end) return {};
  return {begin - part_first, end - begin};
}

std::uint64_t SelectedShape::element(std::int64_t combination, std::uint64_t entry) const {
  if (run == 0) return part_begin(elements, parts, part_of(*this, combination)) + entry;
  const std::uint64_t begin = entry * run;
  const std::uint64_t drawn = mix_seed(seed, static_cast<std::uint64_t>(combination), entry);
  return begin + drawn % std::min(run, elements - begin);
}

void write_combination(std::byte* vector, std::int64_t combination) {
  std::memcpy(vector, &combination, sizeof combination);
}

std::int64_t read_combination(const std::byte* vector) {
  std::int64_t combination;
  std::memcpy(&combination, vector, sizeof combination);
  return combination;
}

template <class T>
void encode_selected(const SelectedShape& shape, std::int64_t combination, const T* values,
                     std::uint64_t first, std::size_t count, std::byte* vector) {
  const std::uint64_t at = shape.range(combination, first, count).first;
  for_each_entry(shape, combination, first, count, [&](std::uint64_t e, std::uint64_t k) {
    std::byte* to = vector + shape.offset_bytes(at + k);
    if (shape.value_bytes == sizeof(double)) {
      const auto value = static_cast<double>(values[e]);
      std::memcpy(to, &value, sizeof value);
    } else {
      const auto value = static_cast<float>(values[e]);
      std::memcpy(to, &value, sizeof value);
    }
  });
}

template <class T>
void decode_selected(const SelectedShape& shape, std::int64_t combination, const std::byte* stored,
                     std::uint64_t first, std::size_t count, T* to) {
  for_each_entry(shape, combination, first, count, [&](std::uint64_t e, std::uint64_t k) {
    if (shape.value_bytes == sizeof(double)) {
      double value;
      std::memcpy(&value, stored + k * sizeof value, sizeof value);
      to[e] = static_cast<T>(value);
    } else {
      float value;
      std::memcpy(&value, stored + k * sizeof value, sizeof value);
      to[e] = static_cast<T>(value);
    }
  });
}

template void encode_selected(const SelectedShape&, std::int64_t, const float*, std::uint64_t,
                              std::size_t, std::byte*);
template void encode_selected(const SelectedShape&, std::int64_t, const double*, std::uint64_t,
                              std::size_t, std::byte*);
template void decode_selected(const SelectedShape&, std::int64_t, const std::byte*, std::uint64_t,
                              std::size_t, float*);
template void decode_selected(const SelectedShape&, std::int64_t, const std::byte*, std::uint64_t,
                              std::size_t, double*);

// Entries have functions of their own (fast/codec/selected.hpp): there are no runs.
const Record records::selected{.for_users = false};

}  // namespace fast::codec
