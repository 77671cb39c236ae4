// Rounds in which a worker has at most one neighbor, both ways.
#pragma once

#include <fast/topology/stencil.hpp>

#include <functional>
#include <utility>

namespace fast {

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
