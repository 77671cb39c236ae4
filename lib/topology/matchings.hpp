// Rounds in which a worker has at most one neighbor, both ways.
#pragma once

#include <fast/topology/stencil.hpp>

#include <cstdint>
#include <functional>
#include <utility>

#include "topology/stencil_graph.hpp"

namespace fast {

// Seeded permutations of 0..size-1 of which each entry is computed alone.

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

class Matching : public Graph {
 public:
  /// partner(partner(i)) == i; partner(i) == i sits the round out.
  Matching(int workers, std::function<int(int)> partner)
      : workers_(workers), partner_(std::move(partner)) {}

  int workers() const override { return workers_; }
  std::vector<int> in_neighbors(int worker) const override;
  std::vector<int> out_neighbors(int worker) const override { return in_neighbors(worker); }
  int in_degree(int worker) const override { return partner_(worker) == worker ? 0 : 1; }
  int out_degree(int worker) const override { return in_degree(worker); }
  bool is_symmetric() const override { return true; }

 private:
  int workers_;
  std::function<int(int)> partner_;
};

/// The same between neighbors on a torus.
class MatchingOnGrid final : public Matching, public OnGrid {
 public:
  MatchingOnGrid(GridShape grid, int workers, std::function<int(int)> partner)
      : Matching(workers, std::move(partner)), grid_(std::move(grid)) {}
  const GridShape& grid() const override { return grid_; }

 private:
  GridShape grid_;
};

}  // namespace fast
