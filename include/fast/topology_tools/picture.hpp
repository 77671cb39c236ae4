// Pictures of topologies: SVG for slides, DOT for graphviz. Component topology_tools.
#pragma once

#include <fast/topology/topology.hpp>

#include <string>
#include <vector>

namespace fast {

/// Returns an SVG document. Grids are drawn as grids, with edges round a torus as stubs at both
/// ends. Rings are drawn as rings, trees as trees, a star round its center, hosts as clusters, all
/// else on a circle. Worker 0 and the workers that it reads stand out. Arrows show the way values
/// travel; lines go both ways. A schedule has a panel a round, of at most 12 rounds. `caption`
/// stands under the name. Throws Error(topology) above 1024 workers.
std::string svg_picture(const Schedule& schedule, const std::string& caption = "");

/// A graphviz document, one cluster a round.
std::string dot_picture(const Schedule& schedule);

struct Curve {
  std::string name;
  std::vector<double> values;  ///< after 0, 1, 2, ... rounds
};

/// Curves over rounds on a logarithmic scale from 1 down to 1e-6, each with its name.
std::string svg_curves(const std::string& title, const std::vector<Curve>& curves);

}  // namespace fast
