#include <algorithm>
#include <array>
#include <cstring>
#include <fast/codec/block.hpp>
#include <fast/codec/selected.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>

#include "codec/record.hpp"
#include "core/equal_parts.hpp"

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

/// Consecutive entries of a message, and where their elements lie.
template <class T>
struct EntryRun {
  std::uint64_t first = 0;  ///< place of its first entry among the entries of the range
  std::size_t count = 0;
  std::array<std::size_t, group_elements> elements{};
  std::array<T, group_elements> values{};
};

/// visit(run) of all entries. Those left out by for_each_entry() are at the ends of the range.
template <class T, class Visit>
void for_each_run(const SelectedShape& shape, std::int64_t combination, std::uint64_t first,
                  std::size_t count, const Visit& visit) {
  EntryRun<T> run;
  const auto flush = [&] {
    if (run.count > 0) visit(run);
    run.count = 0;
  };
  for_each_entry(shape, combination, first, count, [&](std::uint64_t e, std::uint64_t k) {
    if (run.count == 0) run.first = k;
    run.elements[run.count++] = e;
    if (run.count == run.elements.size()) flush();
  });
  flush();
}

template <class Stored, class T>
void store(const EntryRun<T>& run, std::byte* to) {
  for (std::size_t i = 0; i < run.count; ++i) {
    const auto value = static_cast<Stored>(run.values[i]);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

template <class Stored, class T>
void load(EntryRun<T>& run, const std::byte* from) {
  for (std::size_t i = 0; i < run.count; ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    run.values[i] = static_cast<T>(value);
  }
}

}  // namespace

Kind SelectedShape::code_of(DType dtype) const {
  if (code == Kind::identity) return code;
  if (dtype == DType::bf16) return Kind::bf16;
  return dtype == DType::f16 ? Kind::fp16 : code;
}

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

Kind code_of_entries(Kind codec) { return bits(codec) < 16 ? Kind::identity : codec; }

void write_combination(std::byte* vector, std::int64_t combination) {
  std::memcpy(vector, &combination, sizeof combination);
}

std::int64_t read_combination(const std::byte* vector) {
  std::int64_t combination;
  std::memcpy(&combination, vector, sizeof combination);
  return combination;
}

template <class T>
void encode_selected(const SelectedShape& shape, Kind code, std::int64_t combination,
                     const T* values, std::uint64_t first, std::size_t count, std::byte* vector,
                     std::optional<std::uint32_t> rounding_key) {
  const std::uint64_t at = shape.range(combination, first, count).first;
  for_each_run<T>(shape, combination, first, count, [&](EntryRun<T>& run) {
    for (std::size_t i = 0; i < run.count; ++i) run.values[i] = values[run.elements[i]];
    std::byte* to = vector + shape.offset_bytes(at + run.first);
    if (code != Kind::identity) {
      encode(code, run.values.data(), run.count, to, {rounding_key, at + run.first});
    } else if (shape.value_bytes == sizeof(double)) {
      store<double>(run, to);
    } else {
      store<float>(run, to);
    }
  });
}

template <class T>
void decode_selected(const SelectedShape& shape, Kind code, std::int64_t combination,
                     const std::byte* stored, std::uint64_t first, std::size_t count, T* to) {
  for_each_run<T>(shape, combination, first, count, [&](EntryRun<T>& run) {
    const std::byte* from = stored + run.first * shape.value_bytes;
    if (code != Kind::identity) {
      decode(code, from, run.count, run.values.data());
    } else if (shape.value_bytes == sizeof(double)) {
      load<double>(run, from);
    } else {
      load<float>(run, from);
    }
    for (std::size_t i = 0; i < run.count; ++i) to[run.elements[i]] = run.values[i];
  });
}

#define FAST_SELECTED_OF(T)                                                                        \
  template void encode_selected(const SelectedShape&, Kind, std::int64_t, const T*, std::uint64_t, \
                                std::size_t, std::byte*, std::optional<std::uint32_t>);            \
  template void decode_selected(const SelectedShape&, Kind, std::int64_t, const std::byte*,        \
                                std::uint64_t, std::size_t, T*);
FAST_SELECTED_OF(float)
FAST_SELECTED_OF(double)
#undef FAST_SELECTED_OF

// Entries have functions of their own (fast/codec/selected.hpp): there are no runs.
const Record records::selected{.for_users = false};

}  // namespace fast::codec
