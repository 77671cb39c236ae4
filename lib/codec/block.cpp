#include <algorithm>
#include <array>
#include <cmath>
#include <fast/core/error.hpp>

#include "codec/block.hpp"

namespace fast::codec {
namespace {

const Record& record_with_runs(Kind kind) {
  const Record& record = record_of(kind);
  require(record.coded_bytes != nullptr, ErrorKind::internal, "codec: kind {} has no runs",
          static_cast<int>(kind));
  return record;
}

/// visit(first, count) over runs of at most a group, for conversions in a small buffer.
template <class Visit>
void for_runs(std::size_t count, const Visit& visit) {
  for (std::size_t first = 0; first < count; first += group_elements) {
    visit(first, std::min(group_elements, count - first));
  }
}

template <class T>
void feed_back(Kind kind, const T* x, T* e, std::size_t count, std::byte* to,
               const Rounding& rounding) {
  for_runs(count, [&](std::size_t first, std::size_t length) {
    std::array<T, group_elements> decoded;
    for (std::size_t i = 0; i < length; ++i) e[first + i] += x[first + i];
    std::byte* coded = to + coded_bytes(kind, first);
    encode(kind, e + first, length, coded, {rounding.key, rounding.first + first});
    decode(kind, coded, length, decoded.data());
    for (std::size_t i = 0; i < length; ++i) {
      e[first + i] = std::isfinite(decoded[i]) ? e[first + i] - decoded[i] : T{0};
    }
  });
}

}  // namespace

std::size_t coded_bytes(Kind kind, std::size_t count) {
  return record_with_runs(kind).coded_bytes(count);
}

void encode(Kind kind, const float* from, std::size_t count, std::byte* to,
            const Rounding& rounding) {
  record_with_runs(kind).encode(from, count, to, rounding);
}

void encode(Kind kind, const double* from, std::size_t count, std::byte* to,
            const Rounding& rounding) {
  const Record& record = record_with_runs(kind);
  if (record.encode_doubles != nullptr) return record.encode_doubles(from, count, to);
  for_runs(count, [&](std::size_t first, std::size_t length) {
    std::array<float, group_elements> narrowed;
    for (std::size_t e = 0; e < length; ++e) narrowed[e] = static_cast<float>(from[first + e]);
    record.encode(narrowed.data(), length, to + record.coded_bytes(first),
                  {rounding.key, rounding.first + first});
  });
}

void decode(Kind kind, const std::byte* from, std::size_t count, float* to) {
  record_with_runs(kind).decode(from, count, to);
}

void decode(Kind kind, const std::byte* from, std::size_t count, double* to) {
  const Record& record = record_with_runs(kind);
  if (record.decode_doubles != nullptr) return record.decode_doubles(from, count, to);
  for_runs(count, [&](std::size_t first, std::size_t length) {
    std::array<float, group_elements> decoded;
    record.decode(from + record.coded_bytes(first), length, decoded.data());
    for (std::size_t e = 0; e < length; ++e) to[first + e] = static_cast<double>(decoded[e]);
  });
}

void encode_with_feedback(Kind kind, const float* x, float* e, std::size_t count, std::byte* to,
                          const Rounding& rounding) {
  const Record& record = record_with_runs(kind);
  if (record.encode_with_feedback != nullptr) {
    return record.encode_with_feedback(x, e, count, to, rounding);
  }
  feed_back(kind, x, e, count, to, rounding);
}
void encode_with_feedback(Kind kind, const double* x, double* e, std::size_t count, std::byte* to,
                          const Rounding& rounding) {
  feed_back(kind, x, e, count, to, rounding);
}

}  // namespace fast::codec
