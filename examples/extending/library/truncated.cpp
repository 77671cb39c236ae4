#include <bit>
#include <cstring>

#include "codec/block.hpp"

namespace fast::codec {

const Record records::truncated{
    .keeps_halves = true,
    .coded_bytes = [](std::size_t count) { return sizeof(std::uint16_t) * count; },
    .encode =
        [](const float* from, std::size_t count, std::byte* to, const Rounding&) {
          for (std::size_t e = 0; e < count; ++e) {
            const auto all = std::bit_cast<std::uint32_t>(from[e]);
            const auto bits = static_cast<std::uint16_t>(all >> 16);
            std::memcpy(to + sizeof bits * e, &bits, sizeof bits);
          }
        },
    .decode =
        [](const std::byte* from, std::size_t count, float* to) {
          for (std::size_t e = 0; e < count; ++e) {
            std::uint16_t bits;
            std::memcpy(&bits, from + sizeof bits * e, sizeof bits);
            to[e] = std::bit_cast<float>(std::uint32_t{bits} << 16);
          }
        },
};

}  // namespace fast::codec
