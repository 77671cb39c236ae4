#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/worker/choose_topology.hpp>
#include <fast/worker/requirements.hpp>
#include <optional>

#include "topology/hosts.hpp"

namespace fast {
namespace {

std::string text_of(const HostSizes& sizes) {
  const std::string each = sizes.are_equal() ? fmt::format("{}", sizes.most)
                                             : fmt::format("{} to {}", sizes.least, sizes.most);
  const char* workers = sizes.most == 1 ? "worker" : "workers";
  if (sizes.hosts == 1) return fmt::format("1 host, {} {}", each, workers);
  return fmt::format("{} hosts, {} {} each", sizes.hosts, each, workers);
}

struct TopologyCandidate {
  std::string name, advantage;
};

/// Best first.
std::vector<TopologyCandidate> candidates(const HostSizes& sizes, const TopologyUse& use) {
  if (use.rule.topology.needs_sites) return {{"sites", "one payload per host in 50 rounds"}};
  std::vector<TopologyCandidate> found;
  const bool several = sizes.hosts > 1, exact = use.staleness == 0;
  const std::string one_payload = "at most one payload per host and round";
  if (several && exact && sizes.are_equal() && sizes.most > 1) {
    found.push_back({"hierarchical_one_peer", one_payload});
  }
  if (several && exact && sizes.most == 1) found.push_back({"base2", one_payload});
  if (several && sizes.most > 1) {
    found.push_back({"hierarchical", "edges between the first workers of hosts only"});
  }
  found.push_back({"torus2d", "4 neighbors at most, at any staleness bound"});
  found.push_back({"random_matchings", "pairs"});
  found.push_back({"complete", "all workers read each other"});
  return found;
}

/// None if the rule does not fit; else whether it fits without a notice.
std::optional<bool> fits(const std::string& name, const std::vector<int>& host_of_rank,
                         const TopologyUse& use) try {
  const Schedule schedule =
      topology_on_hosts(name, host_of_rank).make(static_cast<int>(host_of_rank.size()));
  return fitting_weights(schedule, use.rule, use.weights, use.lazy, use.staleness).notice.empty();
} catch (const Error& error) {
  if (error.kind() != ErrorKind::topology) throw;
  return std::nullopt;
}

const char* advice(const algorithm::RuleTraits& rule) {
  return rule.topology.needs_sites
             ? "start as many workers on each host, name a file of sites with "
               "workers_per_site, or choose another algorithm"
             : "name a topology, or choose another algorithm or other weights";
}

}  // namespace

ChosenTopology choose_topology(const std::vector<int>& host_of_rank, const TopologyUse& use) {
  require(!host_of_rank.empty(), ErrorKind::argument, "choose_topology: no workers");
  const HostSizes sizes(host_of_rank);
  std::optional<TopologyCandidate> best;
  for (const TopologyCandidate& each : candidates(sizes, use)) {
    const std::optional<bool> without_notice = fits(each.name, host_of_rank, use);
    if (!without_notice) continue;
    if (!best || *without_notice) best = each;
    if (*without_notice) break;
  }
  require(best.has_value(), ErrorKind::topology,
          "choose_topology: algorithm {} fits none of the topologies that auto tries on {}; {}",
          use.rule.name, text_of(sizes), advice(use.rule));
  return {best->name, fmt::format("{}: {}", text_of(sizes), best->advantage), text_of(sizes)};
}

bool suits(const std::string& topology, const std::vector<int>& host_of_rank,
           const TopologyUse& use) {
  if (use.rule.topology.needs_sites) return false;
  if (!fits(topology, host_of_rank, use).value_or(false)) return false;
  if (use.staleness == 0) return true;
  const auto workers = static_cast<int>(host_of_rank.size());
  return topology_on_hosts(topology, host_of_rank).make(workers).is_static();
}

}  // namespace fast
