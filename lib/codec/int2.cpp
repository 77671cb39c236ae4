#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/record.hpp"

// Four codes of 2 bits a byte, the first in the lowest bits: the sign, and whether |x| is above the
// group's mean |x|. A group has two scales, the mean |x| of those below and of those above. As each
// is the mean of what it stands for, ‖x - Q(x)‖ < ‖x‖ for all x that are not 0: what is coded
// again and again as differences comes to its end.
namespace fast::codec {
namespace {

constexpr std::size_t int2_scales_bytes = 2 * sizeof(float);

constexpr std::size_t int2_code_bytes(std::size_t count) { return (count + 3) / 4; }

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
  std::fill_n(to + int2_scales_bytes, int2_code_bytes(count), std::byte{0});
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

/// visit(first element, elements, where their code lies)
template <class Bytes, class Visit>
void for_groups_of_int2(Bytes* coded, std::size_t count, const Visit& visit) {
  for (std::size_t first = 0; first < count; first += group_elements) {
    visit(first, std::min(group_elements, count - first), coded);
    coded += int2_scales_bytes + int2_code_bytes(group_elements);
  }
}

}  // namespace

const Record records::int2{
    .feeds_back = true,
    .by_tensor = true,
    .coded_bytes =
        [](std::size_t count) {
          return int2_code_bytes(count) +
                 (count + group_elements - 1) / group_elements * int2_scales_bytes;
        },
    .encode =
        [](const float* from, std::size_t count, std::byte* to, const Rounding&) {
          for_groups_of_int2(to, count, [&](std::size_t first, std::size_t length, std::byte* at) {
            encode_int2(from + first, length, at);
          });
        },
    .decode =
        [](const std::byte* from, std::size_t count, float* to) {
          for_groups_of_int2(from, count,
                             [&](std::size_t first, std::size_t length, const std::byte* at) {
                               decode_int2(at, length, to + first);
                             });
        },
};

}  // namespace fast::codec
