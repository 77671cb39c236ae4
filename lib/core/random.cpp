#include <bit>
#include <cmath>
#include <fast/core/random.hpp>
#include <numbers>

#include "core/mixed_bits.hpp"

namespace fast {

std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t a, std::uint64_t b) noexcept {
  return mixed_seed(seed, a, b);
}

Rng::Rng(std::uint64_t seed) noexcept {
  for (std::uint64_t& word : state_) word = mixed_bits(seed += mixing_step);
}

Rng::result_type Rng::operator()() noexcept {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

double Rng::normal() noexcept {  // Box & Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::uint64_t Rng::below(std::uint64_t bound) noexcept {
  const std::uint64_t limit = max() - max() % bound;
  std::uint64_t value = (*this)();
  while (value >= limit) value = (*this)();
  return value % bound;
}

}  // namespace fast
