// The hosts of a run, from a number for each rank that differs between hosts.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

namespace fast {

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
