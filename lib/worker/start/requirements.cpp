#include <fast/core/error.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>
#include <optional>

#include "topology/hosts.hpp"
#include "worker/start/meetings.hpp"
#include "worker/start/requirements.hpp"

namespace fast {
namespace {

using algorithm::MixingRequirement;
using algorithm::RuleTraits;

constexpr double rounding = 1e-9;

bool is_metropolis(const Topology& topology, WeightRule rule) {
  if (rule == WeightRule::metropolis) return true;
  return rule == WeightRule::automatic && !topology.has_given_weights() && topology.is_symmetric();
}

/// Symmetric and doubly stochastic by construction, which spares the check.
bool is_metropolis(const Schedule& schedule, WeightRule rule) {
  const std::int64_t rounds = schedule.period_or(looked_at_of_endless);
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (!is_metropolis(schedule.at(round), rule)) return false;
  }
  return true;
}

/// "" when nothing is missing.
std::string missing(const MixingCheck& found, const RuleTraits& rule) {
  switch (rule.topology.mixing) {
    case MixingRequirement::doubly_stochastic:
      return found.doubly_stochastic() ? "" : "weights whose rows and columns all sum to 1";
    case MixingRequirement::symmetric:
    case MixingRequirement::positive:
      return found.doubly_stochastic() && found.symmetric
                 ? ""
                 : "symmetric weights whose rows all sum to 1";
    case MixingRequirement::column_stochastic:
      return found.columns ? "" : "weights whose columns all sum to 1";
    case MixingRequirement::matching:
      return found.symmetric && found.pairs
                 ? ""
                 : "pairs of workers that read each other with weight 1/2";
    case MixingRequirement::tree:
      return missing_of_tree(found, rule.messages.vectors);
    case MixingRequirement::complete:
      return found.complete ? "" : "the topology complete: everybody reads all others";
    default:
      return {};
  }
}

bool is_met_by_metropolis(MixingRequirement needed) {
  return needed == MixingRequirement::doubly_stochastic || needed == MixingRequirement::symmetric ||
         needed == MixingRequirement::positive;
}

std::string text_of_bound(double eigenvalue) {
  return eigenvalue == -1.0 / 3 ? "-1/3" : fmt::format("{:.6g}", eigenvalue);
}

/// Makes the weights lazy, or refuses, unless all eigenvalues are above the rule's bound.
void require_positive(const Schedule& schedule, const RuleTraits& rule, FittingWeights& weights) {
  if (schedule.workers() == 1) return;
  const Spectrum found = spectrum(schedule, weights.rule, weights.lazy);
  const double smallest = found.smallest_eigenvalue.value_or(-1);
  const double bound = rule.topology.eigenvalues_above;
  if (found.converged && smallest > bound + rounding) return;
  require(!rule.topology.strict, ErrorKind::topology,
          "Worker: algorithm {} on {}: the smallest eigenvalue of the weights is {:.13g}, it must "
          "exceed {} by more than {}; use lazy weights",
          rule.name, schedule.name(), smallest, text_of_bound(bound), rounding);
  weights.lazy = true;
  weights.notice = fmt::format(
      "algorithm {} on {}: the smallest eigenvalue of the weights is {:.13g}, it must exceed {} "
      "by more than {}; lazy weights (I+W)/2 are used, which need up to twice the rounds",
      rule.name, schedule.name(), smallest, text_of_bound(bound), rounding);
}

/// A rule that averages weights alone has no sums that every round must keep.
bool keeps_mean_on_average(const RuleTraits& rule) {
  return rule.topology.mixing == MixingRequirement::doubly_stochastic &&
         rule.messages.vectors == 1 && (rule.memory.vectors == 0 || rule.topology.needs_sites);
}

/// Refuses weights that do not fit, or notes what they lack where the rule runs all the same.
void check_weights(const Schedule& schedule, const RuleTraits& rule, FittingWeights& weights) {
  if (is_met_by_metropolis(rule.topology.mixing) && is_metropolis(schedule, weights.rule)) return;
  const MixingCheck found = check_mixing(schedule, weights.rule, weights.lazy);
  const std::string lacks = missing(found, rule);
  if (lacks.empty()) return;
  if (keeps_mean_on_average(rule) && found.doubly_stochastic_on_average()) return;
  require(rule.topology.mixing == MixingRequirement::doubly_stochastic, ErrorKind::topology,
          "Worker: algorithm {} on {} with {} weights: it needs {}; choose another topology, "
          "other weights or another algorithm",
          rule.name, schedule.name(), name(weights.rule), lacks);
  weights.notice = fmt::format(
      "algorithm {} on {} with {} weights keeps the workers' mean only with {}; push_sum needs "
      "none of it",
      rule.name, schedule.name(), name(weights.rule), lacks);
}

/// Its messages are the weights as they are, and there is nothing that belongs to an edge.
bool averages_alone(const RuleTraits& rule) {
  const algorithm::Messages& messages = rule.messages;
  const bool sends_weights = messages.vectors == 1 && messages.scalars == 0 && !messages.surveys &&
                             !messages.weights_apart && !messages.selection.selects() &&
                             !messages.sparsity.bounded();
  return sends_weights && rule.memory.vectors == 0 &&
         (rule.topology.mixing == MixingRequirement::doubly_stochastic ||
          rule.topology.scope != algorithm::Scope::neighbors);
}

void check_schedule(const Schedule& schedule, const RuleTraits& rule, std::int64_t staleness) {
  require(!rule.topology.needs_static || schedule.is_static(), ErrorKind::topology,
          "Worker: algorithm {} on schedule {}, which changes from round to round; it needs a "
          "topology that stays",
          rule.name, schedule.name());
  require(!rule.topology.needs_meetings || schedule.workers() <= worker::most_workers_that_meet,
          ErrorKind::topology,
          "Worker: algorithm {} for {} workers: for more than {}, its adaptive rates are not "
          "computed; give both mixing_rate and second_step",
          rule.name, schedule.workers(), worker::most_workers_that_meet);
  require(
      !rule.topology.needs_sites || host_edges_of(schedule.at(0)) != HostEdges::Kind::anywhere,
      ErrorKind::topology,
      "Worker: algorithm {} on {}: it needs rounds within sites and rounds between them; choose "
      "the topology sites or hierarchical_one_peer",
      rule.name, schedule.name());
  const bool whole = shards_of(schedule.at(0)) == nullptr;
  require(whole || averages_alone(rule), ErrorKind::topology,
          "Worker: algorithm {} on {}: shards are for rules that average weights and do nothing "
          "else, such as awc and atc; choose hierarchical_one_peer",
          rule.name, schedule.name());
  require(whole || staleness == 0, ErrorKind::topology,
          "Worker: a staleness above 0 on {}: shards are exchanged at staleness 0; choose that, or "
          "hierarchical_one_peer",
          schedule.name());
  const bool sums = rule.messages.delivery == algorithm::Delivery::summed && staleness > 0;
  require(!sums || schedule.is_static(), ErrorKind::topology,
          "Worker: algorithm {} with a staleness above 0 on schedule {}, which changes from round "
          "to round; its running sums need edges that stay, take staleness 0 or such a topology",
          rule.name, schedule.name());
}

}  // namespace

MixingNeeds requirements(const RuleTraits& rule) {
  MixingNeeds needs;
  const bool combines = rule.topology.scope == algorithm::Scope::neighbors;
  if (!combines || rule.topology.mixing == MixingRequirement::anything ||
      rule.topology.mixing == MixingRequirement::unit) {
    needs.connected = combines;
    return needs;
  }
  if (rule.topology.mixing == MixingRequirement::tree) {  // its weights do not count
    needs.connected = needs.unchanging = true;
    needs.tree_of = rule.messages.vectors;
    return needs;
  }
  needs.rows = rule.topology.mixing != MixingRequirement::column_stochastic;
  needs.columns_on_average = true;
  needs.columns = !keeps_mean_on_average(rule);
  needs.sites = rule.topology.needs_sites;
  needs.symmetric = rule.topology.mixing == MixingRequirement::symmetric ||
                    rule.topology.mixing == MixingRequirement::positive ||
                    rule.topology.mixing == MixingRequirement::matching;
  needs.unchanging = rule.topology.needs_static;
  needs.pairs = rule.topology.mixing == MixingRequirement::matching;
  needs.complete = rule.topology.mixing == MixingRequirement::complete;
  if (rule.topology.mixing == MixingRequirement::positive)
    needs.eigenvalues_above = rule.topology.eigenvalues_above;
  return needs;
}

WeightRule weight_rule_for(const RuleTraits& rule, const Schedule& schedule, WeightRule given) {
  if (rule.topology.mixing != MixingRequirement::column_stochastic ||
      given != WeightRule::automatic)
    return given;
  return schedule.at(0).has_given_weights() ? WeightRule::given : WeightRule::uniform_columns;
}

FittingWeights fitting_weights(const Schedule& schedule, const RuleTraits& rule, WeightRule given,
                               bool lazy, std::int64_t staleness) {
  check_schedule(schedule, rule, staleness);
  FittingWeights weights{weight_rule_for(rule, schedule, given), lazy, {}};
  if (rule.topology.scope != algorithm::Scope::neighbors) return weights;
  check_weights(schedule, rule, weights);
  if (!rule.timing.why_bounded.empty() && staleness == unbounded_staleness) {
    weights.notice +=
        fmt::format("{}algorithm {} at staleness inf: {}", weights.notice.empty() ? "" : "; ",
                    rule.name, rule.timing.why_bounded);
  }
  if (rule.topology.mixing == MixingRequirement::positive)
    require_positive(schedule, rule, weights);
  return weights;
}

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
  if (!several && exact && use.on_gpus)
    found.push_back({"base2", "one neighbor's weights a round, from its GPU"});
  if (several && sizes.most > 1) {
    found.push_back({"hierarchical", "edges between the first workers of hosts only"});
  }
  found.push_back({"torus2d", "4 neighbors at most, at any staleness bound"});
  found.push_back({"random_matchings", "pairs"});
  found.push_back({"complete", "all workers read each other"});
  found.push_back({"grid1d", "a chain"});
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
