// Graphs of stencils, for placement and pictures too.
#pragma once

#include <fast/topology/stencil.hpp>

#include <cstddef>
#include <vector>

namespace fast {

/// What a Graph may be as well: one whose workers stand on a grid, for placement and pictures.
class OnGrid {
 public:
  virtual ~OnGrid() = default;
  virtual const GridShape& grid() const = 0;
};

/// A stencil on a grid, in O(offsets) memory for any number of workers and O(offsets) time a
/// worker. On sides of 1 and 2 no neighbor is named twice, nor a worker itself.
class StencilGraph : public Graph, public OnGrid {
 public:
  /// Throws Error(topology) when a side is below 1 or when the workers exceed 2³¹ - 1. Throws it
  /// too when an offset is not as long as the grid has sides.
  StencilGraph(GridShape grid, const Offsets& offsets);

  const GridShape& grid() const override { return grid_; }
  /// Those that reach another worker, sorted and distinct; on a torus each in [0, side).
  const Offsets& offsets() const { return offsets_; }

  int workers() const override { return workers_; }
  std::vector<int> in_neighbors(int worker) const override { return at(worker, 1); }
  std::vector<int> out_neighbors(int worker) const override { return at(worker, -1); }
  int in_degree(int worker) const override { return degree(worker, 1); }
  int out_degree(int worker) const override { return degree(worker, -1); }
  bool is_symmetric() const override { return symmetric_; }

 protected:
  /// The neighbor of `worker` at sign·offset, or -1 outside an open grid.
  int neighbor(int worker, const std::vector<int>& offset, int sign) const;

 private:
  std::vector<int> at(int worker, int sign) const;
  int degree(int worker, int sign) const;
  void count_degrees();
  std::size_t place_class(int worker, int sign) const;
  bool fits(const std::vector<int>& offset, std::size_t place_class) const;

  GridShape grid_;
  Offsets offsets_;
  int workers_;
  bool symmetric_;
  // On open grids the degree of a worker depends on its distances to the two ends of each side, up
  // to the longest offset. These are tables over the distances.
  std::vector<int> reach_below_, reach_above_;
  std::vector<int> degrees_;
};

/// A stencil with a weight for each offset. Where two offsets reach the same worker (a torus side
/// of 2) their weights add. The worker itself keeps the weight of an offset that reaches nobody (an
/// open edge) or itself, and what the weights lack to 1.
class WeightedStencilGraph final : public StencilGraph, public GraphWeights {
 public:
  /// weights[k] belongs to offsets[k]. Throws Error(topology) as StencilGraph does and unless the
  /// weights are as many as offsets, finite, not negative, and sum to at most 1.
  WeightedStencilGraph(GridShape grid, const Offsets& offsets, const std::vector<double>& weights);

  std::vector<double> in_weights(int worker) const override;
  double self_weight(int worker) const override;

 private:
  std::vector<double> weights_;  // along offsets()
};

}  // namespace fast
