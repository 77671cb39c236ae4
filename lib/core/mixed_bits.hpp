// The functions behind mix_seed(), which kernels call too.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace fast {

/// The finalizer of SplitMix64 (Steele et al. 2014).
FAST_HOST_DEVICE std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// The step of SplitMix64: its n-th number is mixed_bits(seed + n · mixing_step).
inline constexpr std::uint64_t mixing_step = 0x9e3779b97f4a7c15;

/// mix_seed().
FAST_HOST_DEVICE std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t first = mixed_bits(seed + mixing_step);
  return mixed_bits(mixed_bits(first + a + mixing_step) + b + mixing_step);
}

}  // namespace fast
