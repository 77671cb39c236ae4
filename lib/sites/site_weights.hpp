// Which sites an exchange reads, and with which weights.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/topology/topology.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace fast::sites {

/// A site that an exchange reads, in the topology of the sites that are there.
struct SiteEdge {
  std::string site;
  double weight = 0;  ///< of sites with equal samples
};

/// Whom `own` reads in exchange `number`. `sites` are the names of all that take part, sorted, with
/// `own`; the weights are those of fast/mixing/weights.hpp (Metropolis on undirected topologies).
std::vector<SiteEdge> edges_of(const TopologyRule& rule, const std::vector<std::string>& sites,
                               const std::string& own, std::int64_t number);

/// W_ij for sites whose steps have different numbers of samples: the Metropolis-Hastings rule,
/// whose rows sum to 1 and which keeps Σ samples_i x_i. `equal` is the weight for equal samples
/// (Hastings 1970; Boyd, Diaconis, Xiao 2004).
constexpr double weight_for_samples(double equal, double own, double other) {
  return equal * (other < own ? other / own : 1);
}

/// The rule's sites keep one φ by taking one mean: of those that an exchange has not left out, each
/// counts more, so that sites that leave out the same take one mean.
inline bool takes_mean(const algorithm::RuleTraits& rule) {
  return rule.topology.mixing == algorithm::MixingRequirement::complete;
}

std::set<std::string> sources_of(const std::vector<SiteEdge>& edges);

/// Throws Error(topology) if the topology does not fit the rule for any number of sites.
void require_any_number(const TopologyRule& topology, const algorithm::RuleTraits& rule);

}  // namespace fast::sites
