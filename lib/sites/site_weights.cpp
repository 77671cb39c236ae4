#include "sites/site_weights.hpp"

#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>

#include <algorithm>

namespace fast::sites {

std::vector<SiteEdge> edges_of(const TopologyRule& rule, const std::vector<std::string>& sites,
                               const std::string& own, std::int64_t number) {
  std::vector<SiteEdge> edges;
  if (sites.size() < 2) return edges;
  const auto place = static_cast<int>(std::ranges::lower_bound(sites, own) - sites.begin());
  const Schedule schedule = rule.make(static_cast<int>(sites.size()));
  const MixingRow row = mixing_row(schedule.at(number), place);
  for (std::size_t k = 0; k < row.neighbors.size(); ++k)
    edges.push_back({sites[static_cast<std::size_t>(row.neighbors[k])], row.weights[k]});
  return edges;
}

std::uint64_t hash_of(const std::vector<std::string>& sites) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const std::string& site : sites) {
    for (const char c : site + "\n")
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return hash;
}

void require_any_number(const TopologyRule& rule) {
  constexpr int most = 9;
  for (int sites = 2; sites <= most; ++sites) {
    try {
      require(rule.make(sites).at(0).is_symmetric(), ErrorKind::topology, "its edges are directed");
    } catch (const Error& error) {
      fail(ErrorKind::topology,
           "sites: the topology {} does not fit {} sites, and sites come and go; take ring, "
           "complete or random_matchings ({})",
           rule.name(), sites, error.what());
    }
  }
}

}  // namespace fast::sites
