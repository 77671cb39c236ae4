// Edges as a file lists them, and the topologies they make.
#pragma once

#include <fast/topology/topology.hpp>

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

// Matrix Market files (Boisvert et al. 1996), the exchange format of sparse matrices: SciPy's
// mmwrite and networkx, by way of SciPy, write it.

/// Entry (i, j) is the weight with which worker i - 1 reads worker j - 1. A pattern, and a matrix
/// of ones only in which some row has several, is a graph without weights. Throws Error(topology)
/// with path and line.
TopologyRule rule_in_matrix(const std::string& path, const std::string& text);

}  // namespace fast
