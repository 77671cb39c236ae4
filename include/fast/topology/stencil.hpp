// Stencils: the same offsets at every point of a grid.
#pragma once

#include <fast/topology/topology.hpp>

#include <string>
#include <vector>

namespace fast {

/// A grid of workers, row-major (the last side varies fastest): worker r·columns + c stands in row
/// r and column c.
struct GridShape {
  std::vector<int> sides;
  bool periodic = true;  ///< a torus; otherwise edges are open
};

/// What a Graph may be as well: one whose workers stand on a grid, for placement and pictures.
class OnGrid {
 public:
  virtual ~OnGrid() = default;
  virtual const GridShape& grid() const = 0;
};

/// One offset per neighbor, each as long as the grid has sides: the worker at p reads the one at p
/// + offset.
using Offsets = std::vector<std::vector<int>>;

/// Sides as even as `workers` allows (the smallest sum), the largest first: 12 workers make 4x3 or
/// 3x2x2, 7 make 7x1. Throws Error(topology) unless there are 1 to 3 dimensions.
std::vector<int> balanced_sides(int workers, int dimensions);

/// The nearest neighbors along each axis: 2·dimensions.
Offsets von_neumann(int dimensions);
/// Those across corners as well: 3^dimensions - 1.
Offsets moore(int dimensions);

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

/// "4x3" of {4, 3}.
std::string sides_text(const std::vector<int>& sides);

/// Rules that fit any number of workers, unless sides are given. They throw Error(topology) when
/// sides and workers do not fit.
namespace stencil {

/// Two neighbors, left and right; with `directed`, only the left one (worker - 1) is read.
TopologyRule ring(bool directed = false);
/// Periodic grids with up to 2·dimensions neighbors. Empty sides: balanced_sides.
TopologyRule torus2d(std::vector<int> sides = {});
TopologyRule torus3d(std::vector<int> sides = {});
/// Open grids.
TopologyRule grid1d();
TopologyRule grid2d(std::vector<int> sides = {});
TopologyRule grid3d(std::vector<int> sides = {});
/// Any offsets on a grid of any number of dimensions; empty sides: balanced_sides. `name` is
/// followed by the sides in summaries. Weights, one an offset, make a WeightedStencilGraph.
TopologyRule on_grid(std::string name, GridShape grid, Offsets offsets,
                     std::vector<double> weights = {});
/// The nearest neighbors and those across corners, on a torus: 8 in two dimensions, 26 in three.
TopologyRule moore2d(std::vector<int> sides = {});
TopologyRule moore3d(std::vector<int> sides = {});
/// A torus of sides 2, log₂N of them; N a power of two.
TopologyRule hypercube();
/// Everybody reads everybody.
TopologyRule complete();
/// Directed: worker i reads i - 1, i - 2, i - 4, ... (mod N), ⌈log₂N⌉ of them (Ying et al. 2021,
/// arXiv 2110.13363).
TopologyRule exponential();

}  // namespace stencil

}  // namespace fast
