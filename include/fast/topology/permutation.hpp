// Seeded permutations of 0..size-1 of which each entry is computed alone.
#pragma once

#include <cstdint>

namespace fast {

/// A Feistel network over the next power of four, walked along its cycles until it lands inside
/// (Black & Rogaway 2002). O(1) time and memory an entry, in either direction.
class Permutation {
 public:
  /// size ≥ 1. The same seed gives the same permutation everywhere.
  Permutation(std::uint32_t size, std::uint64_t seed);

  std::uint32_t size() const { return size_; }
  /// 0 ≤ index < size().
  std::uint32_t operator()(std::uint32_t index) const;
  /// inverse((*this)(index)) == index.
  std::uint32_t inverse(std::uint32_t index) const;

 private:
  static constexpr int rounds = 4;
  std::uint32_t half(int round, std::uint32_t value) const;

  std::uint32_t size_;
  int half_bits_;
  std::uint32_t mask_;
  std::uint64_t keys_[rounds];
};

}  // namespace fast
