// The vector kernels behind fast/codec/block.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fast/core/element.hpp>

namespace fast::codec {

/// bfloat16 rounded up or down at random, by key and the index of the element.
void narrow_stochastically(BFloat16* to, const float* from, std::size_t count, std::uint32_t key,
                           std::uint32_t first);

/// A group of int8: codes[e] = x[e] / scale, rounded. Returns the scale: NaN when an x is not
/// finite. `error`, if given, is added to x and becomes what the codes lack.
float quantize(std::int8_t* codes, const float* x, float* error, std::size_t count);
float quantize_stochastically(std::int8_t* codes, const float* x, float* error, std::size_t count,
                              std::uint32_t key, std::uint32_t first);
void dequantize(float* to, const std::int8_t* codes, float scale, std::size_t count);

}  // namespace fast::codec
