#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/groups.hpp"

// Four codes of 2 bits a byte, the first in the lowest bits: the sign, and whether |x| is above the
// mean |x| of the group. A group has two scales: the mean |x| of the elements below that mean, and
// of those above. Each scale is the mean of what it replaces, so ‖x - Q(x)‖ < ‖x‖ for all x ≠ 0.
// Differences that are coded again and again therefore converge to 0.
namespace fast::codec {
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

void encode_int2(const float* x, std::size_t count, std::byte* to) {
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
