#include "codec/sparse.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>

#include "codec/block.hpp"
#include "core/numbers.hpp"

namespace fast::codec {

/// Where the parts of a message of coded entries lie. All fields are read with bounds: its writer
/// may have gone on.
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

Kind code_of_entries(Kind codec) { return bits(codec) != 16 ? Kind::identity : codec; }

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
