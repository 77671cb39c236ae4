#include "codec/record.hpp"

namespace fast::codec {

const Record records::fp16{
    .keeps_halves = true,
    .coded_bytes = [](std::size_t count) { return sizeof(Float16) * count; },
    .encode = [](const float* from, std::size_t count, std::byte* to,
                 const Rounding&) { narrow(reinterpret_cast<Float16*>(to), from, count); },
    .decode = [](const std::byte* from, std::size_t count,
                 float* to) { widen(to, reinterpret_cast<const Float16*>(from), count); },
};

}  // namespace fast::codec
