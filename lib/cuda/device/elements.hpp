// What kernels share: conversions, loads and stores of packs, and the distribution of elements over
// threads. Devices and the host compile it, so that tests need no device. The code names all fused
// multiply-adds, so that all compilers give the same bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fast/core/element.hpp>

#include "core/host_device.hpp"

namespace fast::cuda {

FAST_HOST_DEVICE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
FAST_HOST_DEVICE double fused(double a, double b, double c) { return ::fma(a, b, c); }
FAST_HOST_DEVICE float root(float x) { return ::sqrtf(x); }
FAST_HOST_DEVICE double root(double x) { return ::sqrt(x); }

FAST_HOST_DEVICE void convert(float from, float& to) { to = from; }
FAST_HOST_DEVICE void convert(double from, double& to) { to = from; }
FAST_HOST_DEVICE void convert(BFloat16 from, float& to) {
  const std::uint32_t bits = static_cast<std::uint32_t>(from.bits) << 16;
  memcpy(&to, &bits, sizeof to);
}
/// Rounds to nearest even. NaN stays NaN.
FAST_HOST_DEVICE void convert(float from, BFloat16& to) {
  std::uint32_t bits;
  memcpy(&bits, &from, sizeof bits);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  to.bits = static_cast<std::uint16_t>((from != from ? bits | 0x400000 : rounded) >> 16);
}

FAST_HOST_DEVICE void convert(Float16 from, float& to) {
  const std::uint32_t sign = (from.bits & 0x8000U) << 16, mantissa = from.bits & 0x3ffU;
  const std::uint32_t exponent = from.bits >> 10 & 0x1fU;
  const float small = static_cast<float>(mantissa) * 0x1p-24F;  // zero and subnormal numbers
  std::uint32_t bits;
  memcpy(&bits, &small, sizeof bits);
  if (exponent != 0)
    bits = (exponent == 31 ? 0x7f800000U : (exponent + 112) << 23) | mantissa << 13;
  bits |= sign;
  memcpy(&to, &bits, sizeof to);
}
/// Rounds to nearest even; too large becomes infinity. NaN stays NaN.
FAST_HOST_DEVICE void convert(float from, Float16& to) {
  std::uint32_t bits;
  memcpy(&bits, &from, sizeof bits);
  const std::uint32_t absolute = bits & 0x7fffffffU;
  const float shifted = ::fabsf(from) + 0.5F;  // rounds subnormal numbers to multiples of 2^-24
  std::uint32_t half;
  memcpy(&half, &shifted, sizeof half);
  half -= 0x3f000000U;
  if (absolute >= 0x38800000U)
    half = (absolute + 0xfff + (absolute >> 13 & 1) - (112U << 23)) >> 13;
  if (absolute >= 0x477ff000U) half = 0x7c00U;
  if (from != from) half = 0x7e00U;
  to.bits = static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | half);
}

/// Elements that a thread loads and stores in accesses of 16 bytes, or in one of fewer.
template <class Stored, int Width>
struct alignas(Width * sizeof(Stored) < 16 ? Width * sizeof(Stored) : 16) Pack {
  Stored values[Width];
};

template <int Width, class Stored, class T>
FAST_HOST_DEVICE void load(const Stored* from, T (&to)[Width]) {
  const auto pack = *reinterpret_cast<const Pack<Stored, Width>*>(from);
  for (int i = 0; i < Width; ++i) convert(pack.values[i], to[i]);
}
template <int Width, class Stored, class T>
FAST_HOST_DEVICE void store(const T (&from)[Width], Stored* to) {
  Pack<Stored, Width> pack;
  for (int i = 0; i < Width; ++i) convert(from[i], pack.values[i]);
  *reinterpret_cast<Pack<Stored, Width>*>(to) = pack;
}

/// The part of thread `thread` of `threads`: wide(e) for whole packs, one(e) for the remaining
/// elements.
template <int Width, class Wide, class One>
FAST_HOST_DEVICE void for_share(std::size_t thread, std::size_t threads, std::size_t count,
                                const Wide& wide, const One& one) {
  const std::size_t packs = count / Width;
  for (std::size_t p = thread; p < packs; p += threads) wide(p * Width);
  for (std::size_t e = packs * Width + thread; e < count; e += threads) one(e);
}

/// The part of thread `thread` of `threads` of all `count` elements.
template <int Width, class Elements>
FAST_HOST_DEVICE void run_share(const Elements& elements, std::size_t thread, std::size_t threads,
                                std::size_t count) {
  for_share<Width>(
      thread, threads, count, [&](std::size_t e) { elements.template at<Width>(e); },
      [&](std::size_t e) { elements.template at<1>(e); });
}

}  // namespace fast::cuda
