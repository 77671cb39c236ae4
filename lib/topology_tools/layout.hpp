// Where a picture puts workers.
#pragma once

#include <fast/topology/topology.hpp>

#include <vector>

namespace fast {

struct Point {
  double x = 0, y = 0;
};

struct Layout {
  std::vector<Point> at;  ///< of each worker, in units of the distance between neighbors
  double width = 1, height = 1;
  double spacing = 1;        ///< between the nearest two
  std::vector<int> torus{};  ///< rows and columns when edges may leave at one side and come back
};

Layout layout_of(const Topology& topology);

}  // namespace fast
