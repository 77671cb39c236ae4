// Edges as a file lists them, and the topologies they make.
#pragma once

#include <fast/topology/schedule.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fast {

/// Graphs of edges are held in memory, which a typo must not fill.
inline constexpr int max_listed_workers = 1 << 20;

struct Edge {
  int from = 0;
  int to = 0;  ///< reads the values of `from`
  std::optional<double> weight;
  int line = 0;
};

struct EdgeList {
  std::string path, name;
  int key_line = 0;
  int workers = 0;  ///< 0: as many as a run has
  bool directed = false;
  std::vector<Edge> edges;
  std::string where;  ///< "key \"edges\"": for messages
};

/// A rule that fits list.workers, or any number that holds all edges. Throws Error(topology) on a
/// worker out of range, an edge that is there twice, a loop without weight, weights on some edges
/// only, and weights that do not fit (see Topology).
TopologyRule rule_of(EdgeList list);

}  // namespace fast
