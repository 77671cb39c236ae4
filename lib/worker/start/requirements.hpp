// Whether a rule fits a schedule, and with which weights a Worker runs it there.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/topology/topology.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "mixing/needs.hpp"

namespace fast {

/// What a rule asks of its mixing weights, for require_mixing(). A Worker runs rules that ask for a
/// doubly stochastic matrix with other weights too, and warns: see fitting_weights().
MixingNeeds requirements(const algorithm::RuleTraits& rule);

/// The weight rule that a rule takes for `automatic` on that schedule; any other stays.
WeightRule weight_rule_for(const algorithm::RuleTraits& rule, const Schedule& schedule,
                           WeightRule given);

/// Mixing weights, and how they were chosen.
struct FittingWeights {
  WeightRule rule = WeightRule::automatic;
  bool lazy = false;
  std::string notice;  ///< what the user should know; mostly empty
};

/// The weights with which a Worker runs the rule on the schedule: those given, or others where the
/// rule needs them. Throws Error(topology) when schedule or weights do not fit the rule. Every
/// worker comes to the same result alone. O(edges·period).
FittingWeights fitting_weights(const Schedule& schedule, const algorithm::RuleTraits& rule,
                               WeightRule weights, bool lazy, std::int64_t staleness = 0);

/// Which topology suits the hosts of a run and its rule.
struct ChosenTopology {
  std::string name;    ///< for topology_on_hosts()
  std::string reason;  ///< "4 hosts, 4 workers each: at most one payload per host and round"
  std::string hosts;   ///< "4 hosts, 4 workers each"
};

/// What the rule runs with, as far as it matters for the choice.
struct TopologyUse {
  algorithm::RuleTraits rule;
  std::int64_t staleness = 0;
  WeightRule weights = WeightRule::automatic;
  bool lazy = false;
  bool on_gpus = false;  ///< the weights of all workers are in the memory of GPUs
};

/// Several hosts: hierarchical_one_peer with as many workers on each, base2 with one on each, else
/// hierarchical, which does not change from round to round. One host: torus2d, or base2 with GPUs,
/// where a round reads one neighbor's weights instead of up to four. If the rule does not
/// fit that topology, the next one that it fits. A rule that needs sites gets the topology sites.
/// Pure: every worker comes to the same result from Group::hosts(). Throws Error(topology) if the
/// rule fits none.
ChosenTopology choose_topology(const std::vector<int>& host_of_rank, const TopologyUse& use);

/// Whether another choice may be that topology: the rule runs on it without a notice and, with a
/// staleness above 0, it does not change from round to round. False for a name that is unknown or
/// not for so many workers, and for rules that need sites: another choice would change how many
/// steps lie between their exchanges. Pure.
bool suits(const std::string& topology, const std::vector<int>& host_of_rank,
           const TopologyUse& use);

}  // namespace fast
