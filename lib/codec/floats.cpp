#include "codec/block.hpp"

#include <algorithm>
#include <cstring>

#include "codec/kernels.hpp"

namespace fast::codec {

const Record records::identity{};

const Record records::f64{
    .for_users = false,
    .coded_bytes = [](std::size_t count) { return sizeof(double) * count; },
    .encode = [](const float* from, std::size_t count, std::byte* to,
                 const Rounding&) { std::copy_n(from, count, reinterpret_cast<double*>(to)); },
    .decode =
        [](const std::byte* from, std::size_t count, float* to) {
          const auto* values = reinterpret_cast<const double*>(from);
          std::transform(values, values + count, to,
                         [](double value) { return static_cast<float>(value); });
        },
    .encode_doubles = [](const double* from, std::size_t count,
                         std::byte* to) { std::memcpy(to, from, sizeof(double) * count); },
    .decode_doubles = [](const std::byte* from, std::size_t count,
                         double* to) { std::memcpy(to, from, sizeof(double) * count); },
};

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

const Record records::fp16{
    .keeps_halves = true,
    .coded_bytes = [](std::size_t count) { return sizeof(Float16) * count; },
    .encode = [](const float* from, std::size_t count, std::byte* to,
                 const Rounding&) { narrow(reinterpret_cast<Float16*>(to), from, count); },
    .decode = [](const std::byte* from, std::size_t count,
                 float* to) { widen(to, reinterpret_cast<const Float16*>(from), count); },
};

}  // namespace fast::codec
