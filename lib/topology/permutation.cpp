#include <bit>
#include <fast/core/random.hpp>
#include <fast/topology/permutation.hpp>

namespace fast {

Permutation::Permutation(std::uint32_t size, std::uint64_t seed)
    : size_(size), half_bits_((std::bit_width(size - 1) + 1) / 2), mask_((1u << half_bits_) - 1) {
  for (int round = 0; round < rounds; ++round) {
    keys_[round] = mix_seed(seed, static_cast<std::uint64_t>(round));
  }
}

std::uint32_t Permutation::half(int round, std::uint32_t value) const {
  return static_cast<std::uint32_t>(mix_seed(keys_[round], value)) & mask_;
}

std::uint32_t Permutation::operator()(std::uint32_t index) const {
  do {
    std::uint32_t left = index >> half_bits_, right = index & mask_;
    for (int round = 0; round < rounds; ++round) {
      const std::uint32_t next = left ^ half(round, right);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

std::uint32_t Permutation::inverse(std::uint32_t index) const {
  do {
    std::uint32_t left = index >> half_bits_, right = index & mask_;
    for (int round = rounds; round-- > 0;) {
      const std::uint32_t previous = right ^ half(round, left);
      right = left;
      left = previous;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

}  // namespace fast
