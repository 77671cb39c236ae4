// Graphs that are no stencils. The seeded ones are the same on every worker; they are made once, in
// O(edges) time and memory.
#pragma once

#include <fast/topology/schedule.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace fast {

/// What a Graph may be as well: one whose workers are grouped by host or by site.
class InHosts {
 public:
  virtual ~InHosts() = default;
  virtual const std::vector<std::vector<int>>& workers_of_host() const = 0;
};

/// What a Graph may be as well: one that knows whether its edges are within hosts or between them.
class HostEdges {
 public:
  enum class Kind { anywhere, within, between };
  virtual ~HostEdges() = default;
  /// A round without edges is still within hosts or between them.
  virtual Kind host_edges() const = 0;
};

/// Where the topology says that its edges are; anywhere, if it does not know.
HostEdges::Kind host_edges_of(const Topology& topology);

}  // namespace fast

namespace fast::graph {

/// Everybody reads the center and the center everybody.
TopologyRule star(int center = 0);

/// A balanced tree: worker i's children are branching·i + 1 .. branching·i + branching.
TopologyRule tree(int branching = 2);

/// Every worker has `degree` neighbors (all others where there are fewer), drawn at random among
/// such graphs. Throws Error(topology) when workers × degree is odd.
TopologyRule random_regular(int degree = 4, std::uint64_t seed = 1);

/// Erdős–Rényi: every pair with this probability; left out: 2 ln N / N, or 1 for small N. Drawn
/// again, up to 50 times, until connected; then Error(topology).
TopologyRule erdos_renyi(std::optional<double> probability = {}, std::uint64_t seed = 1);

/// The graph of Watts & Strogatz 1998: a ring on which each worker reads the `neighbors` nearest
/// workers (an even number). The far end of each edge moves to a random worker with probability
/// `rewiring`. It is drawn again as above.
TopologyRule small_world(int neighbors = 4, double rewiring = 0.1, std::uint64_t seed = 1);

/// A graph that is complete within a host, and `among` between hosts. The first `links` workers of
/// a host read the workers of the same place on the hosts that `among` gives their host. Hosts are
/// numbered by their first worker.
TopologyRule hierarchical(TopologyRule among, int workers_per_host, int links = 1);
/// host_of_rank[r] is any number that tells worker r's host from others.
TopologyRule hierarchical(TopologyRule among, const std::vector<int>& host_of_rank, int links = 1);

}  // namespace fast::graph
