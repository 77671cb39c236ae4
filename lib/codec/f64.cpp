#include <algorithm>
#include <cstring>

#include "codec/record.hpp"

namespace fast::codec {

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

}  // namespace fast::codec
