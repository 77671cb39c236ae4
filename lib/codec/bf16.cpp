#include "codec/kernels.hpp"
#include "codec/record.hpp"

namespace fast::codec {

const Record records::bf16{
    .stochastic = true,
    .keeps_halves = true,
    .coded_bytes = [](std::size_t count) { return sizeof(BFloat16) * count; },
    .encode =
        [](const float* from, std::size_t count, std::byte* to, const Rounding& rounding) {
          auto* halves = reinterpret_cast<BFloat16*>(to);
          if (!rounding.key) return narrow(halves, from, count);
          narrow_stochastically(halves, from, count, *rounding.key,
                                static_cast<std::uint32_t>(rounding.first));
        },
    .decode = [](const std::byte* from, std::size_t count,
                 float* to) { widen(to, reinterpret_cast<const BFloat16*>(from), count); },
};

}  // namespace fast::codec
