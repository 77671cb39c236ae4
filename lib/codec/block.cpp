#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fast/codec/block.hpp>
#include <fast/core/error.hpp>

#include "codec/kernels.hpp"

namespace fast::codec {
namespace {

constexpr std::size_t scale_bytes = sizeof(float);

/// visit(group's index of the first element, elements, where it lies)
template <class Bytes, class Visit>
void for_groups(Bytes* coded, std::size_t count, const Visit& visit) {
  for (std::size_t first = 0; first < count; first += group_elements) {
    visit(first, std::min(group_elements, count - first), coded);
    coded += scale_bytes + group_elements;
  }
}

void encode_int8(const float* from, float* error, std::size_t count, std::byte* to,
                 const Rounding& rounding) {
  for_groups(to, count, [&](std::size_t first, std::size_t length, std::byte* group) {
    auto* codes = reinterpret_cast<std::int8_t*>(group + scale_bytes);
    float* of_group = error == nullptr ? nullptr : error + first;
    const auto index = static_cast<std::uint32_t>(rounding.first + first);
    const float scale = rounding.key ? quantize_stochastically(codes, from + first, of_group,
                                                               length, *rounding.key, index)
                                     : quantize(codes, from + first, of_group, length);
    std::memcpy(group, &scale, scale_bytes);
  });
}

void decode_int8(const std::byte* from, std::size_t count, float* to) {
  for_groups(from, count, [&](std::size_t first, std::size_t length, const std::byte* group) {
    float scale;
    std::memcpy(&scale, group, scale_bytes);
    dequantize(to + first, reinterpret_cast<const std::int8_t*>(group + scale_bytes), scale,
               length);
  });
}

[[noreturn]] void refuse(Kind kind) {
  fail(ErrorKind::internal, "codec: kind {} has no runs; bf16, fp16, int8 and f64 have",
       static_cast<int>(kind));
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
  switch (kind) {
    case Kind::bf16:
    case Kind::fp16:
      return 2 * count;
    case Kind::f64:
      return sizeof(double) * count;
    case Kind::int8:
      return count + (count + group_elements - 1) / group_elements * scale_bytes;
    default:
      refuse(kind);
  }
}

void encode(Kind kind, const float* from, std::size_t count, std::byte* to,
            const Rounding& rounding) {
  switch (kind) {
    case Kind::bf16: {
      auto* halves = reinterpret_cast<BFloat16*>(to);
      if (!rounding.key) return narrow(halves, from, count);
      return narrow_stochastically(halves, from, count, *rounding.key,
                                   static_cast<std::uint32_t>(rounding.first));
    }
    case Kind::fp16:
      return narrow(reinterpret_cast<Float16*>(to), from, count);
    case Kind::f64:
      std::copy_n(from, count, reinterpret_cast<double*>(to));
      return;
    case Kind::int8:
      return encode_int8(from, nullptr, count, to, rounding);
    default:
      refuse(kind);
  }
}

void encode(Kind kind, const double* from, std::size_t count, std::byte* to,
            const Rounding& rounding) {
  if (kind == Kind::f64) {
    std::memcpy(to, from, sizeof(double) * count);
    return;
  }
  for_runs(count, [&](std::size_t first, std::size_t length) {
    std::array<float, group_elements> narrowed;
    for (std::size_t e = 0; e < length; ++e) narrowed[e] = static_cast<float>(from[first + e]);
    encode(kind, narrowed.data(), length, to + coded_bytes(kind, first),
           {rounding.key, rounding.first + first});
  });
}

void decode(Kind kind, const std::byte* from, std::size_t count, float* to) {
  switch (kind) {
    case Kind::bf16:
      return widen(to, reinterpret_cast<const BFloat16*>(from), count);
    case Kind::fp16:
      return widen(to, reinterpret_cast<const Float16*>(from), count);
    case Kind::f64:
      std::transform(reinterpret_cast<const double*>(from),
                     reinterpret_cast<const double*>(from) + count, to,
                     [](double value) { return static_cast<float>(value); });
      return;
    case Kind::int8:
      return decode_int8(from, count, to);
    default:
      refuse(kind);
  }
}

void decode(Kind kind, const std::byte* from, std::size_t count, double* to) {
  if (kind == Kind::f64) {
    std::memcpy(to, from, sizeof(double) * count);
    return;
  }
  for_runs(count, [&](std::size_t first, std::size_t length) {
    std::array<float, group_elements> decoded;
    decode(kind, from + coded_bytes(kind, first), length, decoded.data());
    for (std::size_t e = 0; e < length; ++e) to[first + e] = static_cast<double>(decoded[e]);
  });
}

void encode_with_feedback(Kind kind, const float* x, float* e, std::size_t count, std::byte* to,
                          const Rounding& rounding) {
  if (kind == Kind::int8) return encode_int8(x, e, count, to, rounding);
  feed_back(kind, x, e, count, to, rounding);
}
void encode_with_feedback(Kind kind, const double* x, double* e, std::size_t count, std::byte* to,
                          const Rounding& rounding) {
  feed_back(kind, x, e, count, to, rounding);
}

}  // namespace fast::codec
