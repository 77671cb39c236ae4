// The numbers by which layers choose at random in training. The host and GPUs compute them alike.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/mixed_bits.hpp"

namespace fast::nn {

template <class T>
FAST_HOST_DEVICE std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

/// The distance of the parameters that noise is drawn of: at most 256 of them.
FAST_HOST_DEVICE std::size_t noise_stride(std::size_t parameters) { return parameters / 256 + 1; }

/// One number of every noise_stride()-th parameter.
template <class T>
FAST_HOST_DEVICE std::uint64_t noise_of_model(const T* parameters, std::size_t count) {
  std::uint64_t noise = 0;
  for (std::size_t i = 0; i < count; i += noise_stride(count))
    noise = mixed_seed(noise, bits_of(parameters[i]), 0);
  return noise;
}

/// One number of the model's and of a sample's inputs (FNV-1a).
template <class T>
FAST_HOST_DEVICE std::uint64_t noise_of_sample(std::uint64_t of_model, const T* inputs,
                                               std::size_t count) {
  std::uint64_t noise = of_model;
  for (std::size_t i = 0; i < count; ++i) noise = (noise ^ bits_of(inputs[i])) * 0x100000001b3;
  return noise;
}

/// The place of layer i of a list, by which layers differ. The list of the model has the place 0.
constexpr std::int64_t place_in_list(std::int64_t list, std::size_t i) {
  return 1024 * list + static_cast<std::int64_t>(i) + 1;
}
/// The place of the list that is the shortcut of a residual block. The body has that of the block.
constexpr std::int64_t place_of_shortcut(std::int64_t block) { return block + 512; }

// The choice of dropout, which the host and GPUs both compile.

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
