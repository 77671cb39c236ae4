// Stencils: the same offsets on every point of a grid.
#pragma once

#include <fast/topology/schedule.hpp>

#include <span>
#include <string>
#include <vector>

namespace fast {

/// A grid of workers, row-major (the last side varies fastest), and the offsets at which each
/// reads.
struct GridShape {
  std::vector<int> sides;  ///< 1 to 3
  bool periodic = true;    ///< a torus; otherwise edges are open
};

/// Sides as square as `workers` allows, non-increasing from the first... e.g. 12 in 2-D: 4x3; 4:
/// 2x2.
std::vector<int> balanced_sides(int workers, int dimensions);

/// The topology of reading at `offsets` (each as long as sides). On sides of 1 and 2 no neighbour
/// is named twice, nor a worker itself. Throws Error(topology) on empty or non-positive sides or
/// wrong offsets.
Topology stencil_topology(const GridShape& grid, std::vector<std::vector<int>> offsets,
                          std::string name);

namespace stencil {

/// Two neighbours, left and right; with `directed`, only the left one is read.
TopologyRule ring(bool directed = false);
/// Periodic grids with 2·dimensions neighbours (von Neumann). Empty sides: as square as N allows.
TopologyRule torus2d(std::vector<int> sides = {});
TopologyRule torus3d(std::vector<int> sides = {});
/// Open grids in 1 to 3 dimensions.
TopologyRule grid1d();
TopologyRule grid2d(std::vector<int> sides = {});
TopologyRule grid3d(std::vector<int> sides = {});
/// Everybody reads everybody.
TopologyRule complete();

}  // namespace stencil

}  // namespace fast
