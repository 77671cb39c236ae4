#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fast/core/random.hpp>
#include <limits>

#include "codec/block.hpp"
#include "codec/kernels.hpp"

namespace fast::codec {

// Codes of few bits in groups of elements: the scales of a group, then its codes.

/// The places of groups in a coded tensor. The last group may have fewer elements than the others.
template <std::size_t scales_bytes, std::size_t codes_per_byte>
struct Groups {
  static constexpr std::size_t code_bytes(std::size_t count) {
    return (count + codes_per_byte - 1) / codes_per_byte;
  }
  static constexpr std::size_t coded_bytes(std::size_t count) {
    return code_bytes(count) + (count + group_elements - 1) / group_elements * scales_bytes;
  }
  /// Calls visit(first element, number of elements, pointer to the scales) for each group.
  template <class Byte, class Visit>
  static void for_each(Byte* coded, std::size_t count, const Visit& visit) {
    for (std::size_t first = 0; first < count; first += group_elements) {
      visit(first, std::min(group_elements, count - first), coded);
      coded += scales_bytes + code_bytes(group_elements);
    }
  }
};

/// The record of a codec that codes each group on its own: encode_group(values, count, to,
/// rounding) and decode_group(from, count, values).
template <class Places, auto encode_group, auto decode_group>
constexpr Record record_of_groups() {
  Record record{.feeds_back = true, .by_tensor = true, .coded_bytes = Places::coded_bytes};
  record.encode = [](const float* from, std::size_t count, std::byte* to,
                     const Rounding& rounding) {
    Places::for_each(to, count, [&](std::size_t first, std::size_t length, std::byte* group) {
      encode_group(from + first, length, group, {rounding.key, rounding.first + first});
    });
  };
  record.decode = [](const std::byte* from, std::size_t count, float* to) {
    Places::for_each(from, count,
                     [&](std::size_t first, std::size_t length, const std::byte* group) {
                       decode_group(group, length, to + first);
                     });
  };
  return record;
}

namespace {

constexpr std::size_t scale_bytes = sizeof(float);

using Int8Groups = Groups<scale_bytes, 1>;

void encode_int8(const float* from, float* error, std::size_t count, std::byte* to,
                 const Rounding& rounding) {
  Int8Groups::for_each(to, count, [&](std::size_t first, std::size_t length, std::byte* group) {
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
  Int8Groups::for_each(
      from, count, [&](std::size_t first, std::size_t length, const std::byte* group) {
        float scale;
        std::memcpy(&scale, group, scale_bytes);
        dequantize(to + first, reinterpret_cast<const std::int8_t*>(group + scale_bytes), scale,
                   length);
      });
}

}  // namespace

const Record records::int8{
    .stochastic = true,
    .feeds_back = true,
    .by_tensor = true,
    .coded_bytes = Int8Groups::coded_bytes,
    .encode = [](const float* from, std::size_t count, std::byte* to,
                 const Rounding& rounding) { encode_int8(from, nullptr, count, to, rounding); },
    .decode = decode_int8,
    .encode_with_feedback =
        [](const float* x, float* e, std::size_t count, std::byte* to, const Rounding& rounding) {
          encode_int8(x, e, count, to, rounding);
        },
};

// Whole codes c from -levels to levels in 4 or 2 bits each, as c + levels + 1, the first in the
// lowest bits of a byte. The scale of a group lies before its codes.

namespace {

template <int most>
struct WholeCodes {
  static constexpr int levels = most, zero = levels + 1;
  static constexpr std::size_t per_byte = levels == 1 ? 4 : 2, bits = 8 / per_byte;
  using Places = Groups<sizeof(float), per_byte>;

  static void write(float scale, const int* codes, std::size_t count, std::byte* to) {
    std::memcpy(to, &scale, sizeof scale);
    std::byte* bytes = to + sizeof scale;
    std::fill_n(bytes, Places::code_bytes(count), std::byte{0});
    for (std::size_t e = 0; e < count; ++e)
      bytes[e / per_byte] |= static_cast<std::byte>((codes[e] + zero) << bits * (e % per_byte));
  }
  static void decode(const std::byte* from, std::size_t count, float* x) {
    float scale;
    std::memcpy(&scale, from, sizeof scale);
    constexpr int mask = (1 << bits) - 1;
    for (std::size_t e = 0; e < count; ++e) {
      const int several = std::to_integer<int>(from[sizeof scale + e / per_byte]);
      x[e] = scale * static_cast<float>((several >> bits * (e % per_byte) & mask) - zero);
    }
  }
};

// int4: c = round(x/s) with the scale s = max|x|/7.

using Int4 = WholeCodes<7>;

float int4_scale_of(const float* x, std::size_t count) {
  float largest = 0;
  bool finite = true;
  for (std::size_t e = 0; e < count; ++e) {
    largest = std::max(largest, std::abs(x[e]));
    finite &= std::isfinite(x[e]);
  }
  return finite ? largest / Int4::levels : std::numeric_limits<float>::quiet_NaN();
}

void encode_int4(const float* x, std::size_t count, std::byte* to, const Rounding&) {
  const float scale = int4_scale_of(x, count);
  const float inverse = scale > std::numeric_limits<float>::min() ? 1 / scale : 0;
  int codes[group_elements] = {};
  constexpr float most = Int4::levels;
  for (std::size_t e = 0; e < count && inverse > 0; ++e)
    codes[e] = static_cast<int>(std::clamp(std::nearbyint(x[e] * inverse), -most, most));
  Int4::write(scale, codes, count, to);
}

// qsgd4 and qsgd2: QSGD (Alistarh et al. 2017, arXiv 1610.02132, section 3.1) of each group, with
// s = 7 levels and 1: |c| is s|x|/‖x‖, rounded up or down at random so that the mean is exact. What
// that adds to the mean square is at most τ‖x‖², τ = min(d/s², √d/s), of d elements in the group.
// The scale is ‖x‖/(s(1+τ)). The code Q so contracts: the mean of ‖x - Q(x)‖² is at most
// (1 - 1/(1+τ))‖x‖² (Koloskova et al. 2019, arXiv 1902.00340, section 3.2). What holds for each
// group holds for their sum.

template <int levels>
void encode_qsgd(const float* x, std::size_t count, std::byte* to, const Rounding& rounding) {
  double squares = 0;
  for (std::size_t e = 0; e < count; ++e) squares += static_cast<double>(x[e]) * x[e];
  const double norm = std::sqrt(squares), d = static_cast<double>(count);
  const double tau = std::min(d / (levels * levels), std::sqrt(d) / levels);
  int codes[group_elements] = {};
  for (std::size_t e = 0; e < count && norm > 0 && std::isfinite(norm); ++e) {
    const std::uint64_t random = mix_seed(rounding.key.value_or(0), rounding.first + e);
    const double threshold = static_cast<double>(random >> 11) * 0x1p-53;
    const double size = levels * (std::abs(static_cast<double>(x[e])) / norm);
    const int code = std::min(levels, static_cast<int>(size + threshold));
    codes[e] = std::signbit(x[e]) ? -code : code;
  }
  const double scale = norm / (levels * (1 + tau));
  WholeCodes<levels>::write(
      std::isfinite(norm) ? static_cast<float>(scale) : std::numeric_limits<float>::quiet_NaN(),
      codes, count, to);
}

template <int levels>
constexpr Record qsgd_record() {
  using Codes = WholeCodes<levels>;
  Record record = record_of_groups<typename Codes::Places, encode_qsgd<levels>, Codes::decode>();
  record.random = true;
  return record;
}

}  // namespace

const Record records::int4 = record_of_groups<Int4::Places, encode_int4, Int4::decode>();
const Record records::qsgd4 = qsgd_record<7>();
const Record records::qsgd2 = qsgd_record<1>();

// Four codes of 2 bits a byte, the first in the lowest bits: the sign, and whether |x| is above the
// mean |x| of the group. A group has two scales: the mean |x| of the elements below that mean, and
// of those above. Each scale is the mean of what it replaces, so ‖x - Q(x)‖ < ‖x‖ for all x ≠ 0.
// Differences that are coded again and again therefore converge to 0.

namespace {

constexpr std::size_t int2_scales_bytes = 2 * sizeof(float);

using Int2Groups = Groups<int2_scales_bytes, 4>;

struct Int2Scales {
  float below = 0, above = 0;
};

Int2Scales int2_scales_of(const float* x, std::size_t count, float mean) {
  double below = 0, above = 0;
  std::size_t many_above = 0;
  for (std::size_t e = 0; e < count; ++e) {
    const double size = std::abs(x[e]);
    if (size > mean) {
      above += size;
      ++many_above;
    } else {
      below += size;
    }
  }
  const auto many_below = static_cast<double>(count - many_above);
  return {many_below > 0 ? static_cast<float>(below / many_below) : 0,
          many_above > 0 ? static_cast<float>(above / static_cast<double>(many_above)) : 0};
}

void encode_int2(const float* x, std::size_t count, std::byte* to, const Rounding&) {
  double sum = 0;
  for (std::size_t e = 0; e < count; ++e) sum += std::abs(x[e]);
  const float mean = static_cast<float>(sum / static_cast<double>(count));
  constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
  const Int2Scales scales =
      std::isfinite(mean) ? int2_scales_of(x, count, mean) : Int2Scales{no_number, no_number};
  std::memcpy(to, &scales, int2_scales_bytes);
  std::fill_n(to + int2_scales_bytes, Int2Groups::code_bytes(count), std::byte{0});
  for (std::size_t e = 0; e < count; ++e) {
    const unsigned code = (std::signbit(x[e]) ? 1U : 0U) | (std::abs(x[e]) > mean ? 2U : 0U);
    to[int2_scales_bytes + e / 4] |= static_cast<std::byte>(code << 2 * (e % 4));
  }
}

void decode_int2(const std::byte* from, std::size_t count, float* x) {
  Int2Scales scales;
  std::memcpy(&scales, from, int2_scales_bytes);
  const float values[] = {scales.below, -scales.below, scales.above, -scales.above};
  for (std::size_t e = 0; e < count; ++e) {
    x[e] = values[std::to_integer<unsigned>(from[int2_scales_bytes + e / 4]) >> 2 * (e % 4) & 3U];
  }
}

}  // namespace

const Record records::int2 = record_of_groups<Int2Groups, encode_int2, decode_int2>();

}  // namespace fast::codec
