#include "fast_train/planned_topology.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace fast_train {

using fast::simulation::Candidate;
using fast::simulation::Plan;

namespace {

constexpr double worthwhile = 0.9;  ///< of the usual topology's time
constexpr double equal = 1.01;

double round_s(const Candidate& c) { return c.round_s; }
double accuracy_s(const Candidate& c) { return c.relative_rounds * c.round_s; }
double consensus_s(const Candidate& c) {
  return c.consensus_s.value_or(std::numeric_limits<double>::infinity());
}

bool is_faster(const Candidate& c, const Candidate& usual) {
  const auto within = [&](double (*seconds)(const Candidate&), double share) {
    return seconds(c) <= share * seconds(usual);
  };
  if (within(round_s, worthwhile) && within(accuracy_s, worthwhile)) return true;
  const bool agrees_sooner = consensus_s(c) < consensus_s(usual) && within(consensus_s, worthwhile);
  return agrees_sooner && within(round_s, equal) && within(accuracy_s, equal);
}

/// By name. All-reduces are no topologies.
const Candidate* found(const Plan& plan, const std::string& name) {
  const auto it = std::find_if(plan.candidates.begin(), plan.candidates.end(), [&](const auto& c) {
    return !c.is_allreduce() && c.exchange == name;
  });
  return it == plan.candidates.end() ? nullptr : &*it;
}

/// Null: none is faster. `names` is in the order of preference.
const Candidate* best(const Plan& plan, const std::vector<std::string>& names,
                      const Candidate& usual) {
  std::vector<const Candidate*> faster;
  for (const std::string& name : names) {
    const Candidate* each = found(plan, name);
    if (each != nullptr && is_faster(*each, usual)) faster.push_back(each);
  }
  double least_s = std::numeric_limits<double>::infinity();
  for (const Candidate* each : faster) least_s = std::min(least_s, accuracy_s(*each));
  std::erase_if(faster, [&](const Candidate* each) { return accuracy_s(*each) > equal * least_s; });
  const auto first = std::min_element(
      faster.begin(), faster.end(),
      [](const Candidate* a, const Candidate* b) { return consensus_s(*a) < consensus_s(*b); });
  return first == faster.end() ? nullptr : *first;
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string figures_of(const Candidate& c) {
  const std::string consensus = c.consensus_s ? time_text(*c.consensus_s) : std::string("no time");
  return fmt::format("{} a round, {} to agree", time_text(c.round_s), consensus);
}

}  // namespace

std::vector<std::string> compared_topologies() {
  return {"hierarchical_one_peer", "base2",   "one_peer_exponential", "ring",
          "hierarchical",          "torus2d", "exponential"};
}

PlannedTopology advised(const Plan& plan, const std::string& usual,
                        const std::vector<std::string>& names) {
  const Candidate* before = found(plan, usual);
  if (before == nullptr) return {usual, "this rule and these options cannot be planned"};
  const Candidate* after = best(plan, names, *before);
  if (after == nullptr) {
    return {usual, fmt::format("predicted {}; no other one is 10 % faster", figures_of(*before))};
  }
  return {after->exchange,
          fmt::format("predicted {}, with {} {}", figures_of(*after), usual, figures_of(*before))};
}

PlannedTopology planned_topology(const fast::simulation::Cluster& cluster, const std::string& usual,
                                 const std::vector<std::string>& others,
                                 fast::simulation::PlanOptions options) {
  options.topologies = {usual};
  for (const std::string& name : others) {
    if (name != usual) options.topologies.push_back(name);
  }
  return advised(fast::simulation::plan(cluster, options), usual, options.topologies);
}

}  // namespace fast_train
