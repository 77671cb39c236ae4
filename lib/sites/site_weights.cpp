#include "sites/site_weights.hpp"

#include <fast/core/error.hpp>
#include <fast/mixing/weights.hpp>

#include <algorithm>

#include "worker/start/requirements.hpp"

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

std::set<std::string> sources_of(const std::vector<SiteEdge>& edges) {
  std::set<std::string> sources;
  for (const SiteEdge& edge : edges) sources.insert(edge.site);
  return sources;
}

void require_any_number(const TopologyRule& topology, const algorithm::RuleTraits& rule) {
  constexpr int most = 9;
  for (int sites = 2; sites <= most; ++sites) {
    try {
      const Schedule schedule = topology.make(sites);
      require(schedule.at(0).is_symmetric(), ErrorKind::topology, "its edges are directed");
      fitting_weights(schedule, rule, WeightRule::automatic, false);
    } catch (const Error& error) {
      fail(
          ErrorKind::topology,
          "sites: the topology {} does not fit {} on {} sites, and sites come and go; take ring or "
          "complete, complete for diloco, random_matchings for noloco ({})",
          topology.name(), rule.name, sites, error.what());
    }
  }
}

}  // namespace fast::sites
