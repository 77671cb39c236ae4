// The hosts of a run, from a number for each rank that differs between hosts.
#pragma once

#include <fast/topology/topology.hpp>

#include <algorithm>
#include <map>
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

/// What a Graph may be as well: one with weights of its own for each shard of the model.
/// GraphWeights has those of shard 0.
class InShards {
 public:
  virtual ~InShards() = default;
  /// 1: all of the model has the same weights.
  virtual int shards() const = 0;
  /// False: all shards have the weights of shard 0 in this round.
  virtual bool differ() const = 0;
  /// Along in_neighbors(worker).
  virtual std::vector<double> shard_weights(int shard, int worker) const = 0;
  /// The only shard that the worker's edges carry, in either direction; none: they carry all.
  virtual std::optional<int> carried(int worker) const = 0;
};

/// Null: all of the model has the same weights.
const InShards* shards_of(const Topology& topology);

/// The ranks of each host, ascending. Hosts are in the order of their lowest ranks.
inline std::vector<std::vector<int>> ranks_by_host(const std::vector<int>& host_of_rank) {
  std::map<int, std::size_t> index;
  std::vector<std::vector<int>> hosts;
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    const auto at = index.emplace(host_of_rank[rank], hosts.size()).first;
    if (at->second == hosts.size()) hosts.emplace_back();
    hosts[at->second].push_back(static_cast<int>(rank));
  }
  return hosts;
}

/// Hosts of `size` workers each, in order. The last one has those that are left.
inline std::vector<std::vector<int>> hosts_in_order(int workers, int size) {
  std::vector<std::vector<int>> hosts;
  for (int worker = 0; worker < workers; ++worker) {
    if (worker % size == 0) hosts.emplace_back();
    hosts.back().push_back(worker);
  }
  return hosts;
}

struct PlaceOnHost {
  int host = 0, place = 0;
};

/// By worker.
inline std::vector<PlaceOnHost> places_on(const std::vector<std::vector<int>>& hosts) {
  std::vector<PlaceOnHost> places;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (std::size_t place = 0; place < hosts[host].size(); ++place) {
      const auto worker = static_cast<std::size_t>(hosts[host][place]);
      if (places.size() <= worker) places.resize(worker + 1);
      places[worker] = {static_cast<int>(host), static_cast<int>(place)};
    }
  }
  return places;
}

/// How many of the ranks are on each host.
struct HostSizes {
  explicit HostSizes(const std::vector<int>& host_of_rank) {
    for (const std::vector<int>& ranks : ranks_by_host(host_of_rank)) {
      const int size = static_cast<int>(ranks.size());
      least = hosts++ == 0 ? size : std::min(least, size);
      most = std::max(most, size);
    }
  }
  bool are_equal() const { return least == most; }

  int hosts = 0, least = 0, most = 0;
};

}  // namespace fast
