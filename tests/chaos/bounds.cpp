#include "chaos/bounds.hpp"

#include <algorithm>
#include <fast/topology/load.hpp>
#include <fast/topology/topology.hpp>
#include <stdexcept>
#include <string>

namespace chaos {
namespace {

// What the dead have left is forgotten by 1 - step in each of the last 160 rounds: .0003.
constexpr double exact = 0.02;
// The first worker to finish no longer counts while others make their last rounds.
constexpr double late = 0.1;
// A stale read may miss an exchange, and four steps go 1 - .95^4 of the way to the own target.
constexpr double late_by_four_steps = 0.185;
// One peer a round pulls to each side in turn, so that the mean of one moment is off by some steps.
constexpr double in_turn = 0.25;

bool is_undirected(const fast::Schedule& schedule) {
  const std::int64_t rounds = schedule.period() > 0 ? schedule.period() : 8;
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (!schedule.at(round).is_symmetric()) return false;
  }
  return true;
}

fast::Schedule schedule_of(const Plan& plan) {
  return fast::topology_from(plan.topology).make(plan.workers);
}

/// Those that are away for some time or for good.
std::vector<int> absent(const Plan& plan) {
  std::vector<int> all = plan.killed();
  for (const Kind kind : {Kind::stop, Kind::memory}) {
    for (const int victim : plan.victims_of(kind)) all.push_back(victim);
  }
  return all;
}

bool has_links(const Plan& plan) {
  return std::any_of(plan.events.begin(), plan.events.end(),
                     [](const Event& event) { return is_of_links(event.kind); });
}

/// Whether those that stay can all reach each other along directed edges, within each part.
bool parts_are_strong(const Plan& plan, const fast::Schedule& schedule) {
  const std::vector<int> away = absent(plan);
  const fast::Topology topology = schedule.at(0);
  for (const auto& part : fast::living_parts(schedule, away)) {
    for (const int from : part) {
      std::vector<int> reached{from};
      for (std::size_t next = 0; next < reached.size(); ++next) {
        for (const int other : topology.in_neighbors(reached[next])) {
          const bool inside = std::binary_search(part.begin(), part.end(), other);
          if (inside && std::count(reached.begin(), reached.end(), other) == 0)
            reached.push_back(other);
        }
      }
      if (reached.size() != part.size()) return false;
    }
  }
  return true;
}

}  // namespace

fast::algorithm::Parameters parameters_of(const Plan& plan) {
  const std::string& rule = plan.rule;
  if (rule == "choco" || rule == "sparta") {
    // Elements are equal in the small programs: all must travel, or they would differ, as if torn.
    fast::algorithm::Parameters parameters;
    if (!plan.is_training()) parameters["fraction"] = "1";
    if (rule == "choco" && plan.sparse) parameters["random_k"] = "true";
    if (rule == "choco" && plan.sparse && plan.is_training()) parameters["fraction"] = "0.1";
    return parameters;
  }
  const bool coded = plan.codec != "identity";
  if (rule == "diloco" && plan.sparse) {  // elements are equal in the small programs, as above
    return {{"period", "4"},
            {"rate", "1"},
            {"momentum", "0.5"},
            {"delay", "1"},
            {"fraction", plan.is_training() ? "0.1" : "1"}};
  }
  if (rule == "diloco") {
    return {{"period", "4"},
            {"momentum", "0.5"},
            {"delay", "1"},
            {"changes", coded ? "true" : "false"}};
  }
  if (rule == "noloco") return {{"period", "4"}, {"delay", "2"}};
  if (rule == "gasloc") {
    return {{"period", "4"},
            {"acceleration", "0.3"},
            {"consensus_step", coded ? "0.3" : "1"},
            {"changes", coded ? "true" : "false"}};
  }
  if (rule == "relay_sum") return {{"degree", plan.topology == "star" ? "8" : "3"}};
  if (rule == "awc_gasloc") return {{"rate", "0.9"}, {"acceleration", "0.3"}};
  return {};
}

const std::vector<Bound>& bounds() {
  static const std::vector<Bound> all = {
      {"none", exact, exact, exact, exact, false, "ring",
       "each worker comes to its own target, whatever happens to others"},
      {"awc", exact, late, in_turn, in_turn, false, "ring",
       "columns sum to 1: the sum of the steps is 0 at the mean of the targets"},
      {"atc", exact, late, in_turn, in_turn, false, "ring", "as awc"},
      {"local", exact, late_by_four_steps, in_turn, in_turn, false, "ring",
       "as atc; four steps per combination"},
      {"gossip_pga", exact, late, in_turn, in_turn, true, "ring",
       "as atc; the exact average needs every worker"},
      {"gradient_tracking", exact, late, in_turn, in_turn, false, "ring",
       "the trackers sum to the steps, which are 0 at the optimum only"},
      {"d2", exact, exact, exact, exact, false, "ring",
       "the mean moves as in gradient descent; synchronous, static and symmetric only"},
      {"edm", exact, exact, exact, exact, false, "ring",
       "as d2 with momentum .9 of the own steps; synchronous, static and symmetric only"},
      {"gut", exact, exact, exact, exact, false, "ring",
       "what the correction remembers decays; synchronous, static and symmetric only"},
      {"quasi_global_momentum", exact, late, in_turn, in_turn, false, "ring",
       "as atc with momentum .9 of the mean's movement"},
      {"averaged_momentum", exact, late, in_turn, in_turn, false, "ring",
       "as awc: the momentum's mean is that of the mean's steps"},
      {"decentlam", exact, exact, exact, exact, false, "ring",
       "the fixed point is that of atc; synchronous and static only"},
      {"relay_sum", exact, exact, exact, exact, false, "grid1d",
       "workers agree where the steps sum to 0, in each part of the tree; synchronous, static"},
      {"choco", exact, exact, exact, exact, false, "ring",
       "copies of a value cancel in the mean; synchronous and static only"},
      {"push_sum", exact, 0.5, in_turn, 0.5, false, "ring",
       "mass and weighted sum are kept; stale workers with more steps have more influence"},
      {"event_triggered", exact, late, in_turn, in_turn, false, "ring",
       "awc with messages of unequal age; the adaptive threshold falls with the movement"},
      {"pairwise", exact, exact, in_turn, exact, false, "alternating_pairs",
       "a pair keeps its sum; one partner a round"},
      {"a2cid2", exact, exact, in_turn, exact, false, "alternating_pairs",
       "a pair keeps both sums; one partner a round"},
      {"diloco", exact, exact, exact, exact, false, "complete",
       "φ follows the mean step of those that are there; synchronous"},
      {"noloco", exact, in_turn, in_turn, in_turn, false, "random_matchings",
       "the mean of φ moves by the mean step; one partner an exchange"},
      {"gasloc", exact, late_by_four_steps, in_turn, in_turn, false, "ring",
       "as local; γ keeps the mean's optimum"},
      {"awc_gasloc", exact, late, in_turn, in_turn, false, "sites:3",
       "columns of sites sum to 1 on average over rounds; η and γ keep the mean's optimum"},
      {"sparta", exact, late, in_turn, in_turn, false, "ring",
       "as atc, of the entries that travel"},
      {"allreduce", exact, exact, exact, exact, true, "ring",
       "replicas stay equal and follow the mean step; every worker is needed"},
      {"gradient_exchange", exact, exact, exact, exact, false, "complete",
       "on the complete graph the sum of the steps drives the mean; replicas do not agree"},
  };
  return all;
}

const Bound& bound_of(std::string_view rule) {
  const auto found = std::find_if(bounds().begin(), bounds().end(),
                                  [rule](const Bound& bound) { return bound.rule == rule; });
  if (found == bounds().end()) throw std::invalid_argument("no bound for " + std::string(rule));
  return *found;
}

double tolerance(const Plan& plan) {
  const Bound& bound = bound_of(plan.rule);
  double most = bound.steady;
  if (plan.staleness != 0) most = std::max(most, bound.stale);
  if (plan.staleness < 0) most = std::max(most, bound.unbounded);
  const fast::Schedule schedule = schedule_of(plan);
  const bool balances_directed = plan.rule == "gradient_tracking" && schedule.is_static();
  if (!balances_directed && (!schedule.is_static() || !is_undirected(schedule)))
    most = std::max(most, bound.changing);
  return most;
}

bool may_stop_reaching(const Plan& plan) {
  const fast::Schedule schedule = schedule_of(plan);
  const bool directed = schedule.is_static() && !schedule.at(0).is_symmetric();
  return directed && (has_links(plan) || !parts_are_strong(plan, schedule));
}

bool keeps_mean_without_some(const Plan& plan) {
  if (plan.rule == "none") return true;
  const fast::Schedule schedule = schedule_of(plan);
  if (plan.rule == "push_sum") return schedule.is_static();
  // Sites count alike, however many of their workers are left.
  if (plan.rule == "awc_gasloc") return schedule.is_static();
  if (is_undirected(schedule)) return true;
  return plan.rule == "gradient_tracking" && schedule.is_static() && !may_stop_reaching(plan);
}

}  // namespace chaos
