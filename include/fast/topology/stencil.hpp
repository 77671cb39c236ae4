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
/// followed by the sides in summaries. Weights, one an offset, are those of the neighbors at them.
/// Where two offsets reach the same worker (a torus side of 2), their weights add. The worker
/// itself keeps the weight of an offset that reaches nobody (an open edge) or itself, and what the
/// weights lack to 1.
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
