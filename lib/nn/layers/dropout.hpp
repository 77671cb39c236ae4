// The choice of dropout, which the host and GPUs both compile.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/mixed_bits.hpp"

namespace fast::nn {

/// A function of the sample's seed and of the value's place in the sample, in the order of its
/// shape.
class DropoutMask {
 public:
  explicit DropoutMask(double rate)
      : bound_(static_cast<std::uint64_t>(std::ceil(rate * 0x1p53))), scale_(1 / (1 - rate)) {}

  /// Of a sample's noise and of the layer's place.
  FAST_HOST_DEVICE static std::uint64_t seed(std::uint64_t noise, std::int64_t place) {
    return mixed_seed(noise, static_cast<std::uint64_t>(place), 0);
  }
  /// 0 or the scaled value.
  template <class T>
  FAST_HOST_DEVICE T masked(T value, std::uint64_t seed, std::int64_t element) const {
    const auto number = static_cast<std::uint64_t>(element) + 1;
    const bool dropped = mixed_bits(seed + number * mixing_step) >> 11 < bound_;
    return dropped ? T{0} : value * static_cast<T>(scale_);
  }

 private:
  std::uint64_t bound_;  ///< of 53 bits
  double scale_;
};

}  // namespace fast::nn
