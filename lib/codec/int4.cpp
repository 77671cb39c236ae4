#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/groups.hpp"

// Two codes of 4 bits a byte, the first in the low half: c + 8 of c = round(x/s) from -7 to 7. The
// scale s = max|x|/7 of a group lies before its codes.
namespace fast::codec {
namespace {

constexpr std::size_t int4_scale_bytes = sizeof(float);
constexpr int most_int4 = 7, zero_int4 = 8;

using Int4Groups = Groups<int4_scale_bytes, 2>;

float int4_scale_of(const float* x, std::size_t count) {
  float largest = 0;
  bool finite = true;
  for (std::size_t e = 0; e < count; ++e) {
    largest = std::max(largest, std::abs(x[e]));
    finite &= std::isfinite(x[e]);
  }
  return finite ? largest / most_int4 : std::numeric_limits<float>::quiet_NaN();
}

void encode_int4(const float* x, std::size_t count, std::byte* to) {
  const float scale = int4_scale_of(x, count);
  std::memcpy(to, &scale, int4_scale_bytes);
  const float inverse = scale > std::numeric_limits<float>::min() ? 1 / scale : 0;
  std::uint8_t codes[group_elements] = {};
  for (std::size_t e = 0; e < count && inverse > 0; ++e) {
    const float c = std::clamp(std::nearbyint(x[e] * inverse), -1.0F * most_int4, 1.0F * most_int4);
    codes[e] = static_cast<std::uint8_t>(static_cast<int>(c) + zero_int4);
  }
  if (inverse == 0) std::fill_n(codes, count, std::uint8_t{zero_int4});
  for (std::size_t b = 0; b < Int4Groups::code_bytes(count); ++b) {
    to[int4_scale_bytes + b] = static_cast<std::byte>(codes[2 * b] | codes[2 * b + 1] << 4);
  }
}

void decode_int4(const std::byte* from, std::size_t count, float* x) {
  float scale;
  std::memcpy(&scale, from, int4_scale_bytes);
  for (std::size_t e = 0; e < count; ++e) {
    const int both = std::to_integer<int>(from[int4_scale_bytes + e / 2]);
    x[e] = scale * static_cast<float>((e % 2 == 0 ? both & 15 : both >> 4) - zero_int4);
  }
}

}  // namespace

const Record records::int4 = record_of_groups<Int4Groups, encode_int4, decode_int4>();

}  // namespace fast::codec
