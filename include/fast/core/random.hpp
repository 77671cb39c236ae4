// Seeded random numbers that are the same with every compiler and library.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace fast {

/// A well-mixed 64-bit function of its arguments (SplitMix64's finalizer, Steele et al. 2014): how
/// seeds for (seed, worker, epoch, ...) are derived.
std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t a = 0, std::uint64_t b = 0) noexcept;

/// xoshiro256** (Blackman & Vigna 2018). Satisfies UniformRandomBitGenerator.
class Rng {
 public:
  using result_type = std::uint64_t;
  explicit Rng(std::uint64_t seed) noexcept;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() noexcept;

  double uniform() noexcept;  ///< in [0, 1)
  double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  double normal() noexcept;                           ///< mean 0, variance 1
  std::uint64_t below(std::uint64_t bound) noexcept;  ///< in [0, bound), unbiased; bound > 0

  template <class T>
  void shuffle(std::span<T> values) noexcept {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

  /// The generator's state, for checkpoints.
  std::span<std::uint64_t, 4> state() noexcept { return std::span<std::uint64_t, 4>(state_); }

 private:
  std::uint64_t state_[4];
};

}  // namespace fast
