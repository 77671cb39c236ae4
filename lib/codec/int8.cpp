#include <cstring>

#include "codec/groups.hpp"
#include "codec/kernels.hpp"

namespace fast::codec {
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

}  // namespace fast::codec
