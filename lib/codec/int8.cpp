#include <algorithm>
#include <cstring>

#include "codec/kernels.hpp"
#include "codec/record.hpp"

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

}  // namespace

const Record records::int8{
    .stochastic = true,
    .feeds_back = true,
    .by_tensor = true,
    .coded_bytes =
        [](std::size_t count) {
          return count + (count + group_elements - 1) / group_elements * scale_bytes;
        },
    .encode = [](const float* from, std::size_t count, std::byte* to,
                 const Rounding& rounding) { encode_int8(from, nullptr, count, to, rounding); },
    .decode = decode_int8,
    .encode_with_feedback =
        [](const float* x, float* e, std::size_t count, std::byte* to, const Rounding& rounding) {
          encode_int8(x, e, count, to, rounding);
        },
};

}  // namespace fast::codec
