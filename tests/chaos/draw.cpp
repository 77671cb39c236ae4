#include "chaos/draw.hpp"

#include <algorithm>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/topology.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <span>

#include "chaos/bounds.hpp"
#include "chaos/features.hpp"
#include "chaos/work.hpp"
#include "worker/start/requirements.hpp"
#include "worker/start/startup.hpp"

namespace chaos {
namespace {

using fast::Rng;

constexpr int attempts = 200;
constexpr int most_workers = 16, few_workers = 8, most_in_training = 4, most_on_hosts = 6;
constexpr int most_tracking_directed = 8;  ///< stable at rates below .09 on a ring, .054 for nine
/// Stable with current messages, and with messages three rounds old.
constexpr int most_momentum_directed = 11, most_momentum_stale = 4;
constexpr int most_with_large_weights = 4;  ///< or a round takes half a second through the switch

const std::vector<std::string> topologies = {"ring",
                                             "ring",
                                             "torus2d",
                                             "torus2d",
                                             "hypercube",
                                             "complete",
                                             "star",
                                             "tree",
                                             "grid2d",
                                             "directed_ring",
                                             "exponential",
                                             "base2",
                                             "base3",
                                             "one_peer_exponential",
                                             "one_peer_exponential",
                                             "exponential_ring",
                                             "alternating_pairs",
                                             "alternating_pairs_torus",
                                             "random_matchings",
                                             "equidyn"};

const std::vector<std::string> topologies_of_sites = {"sites:3", "sites:4",
                                                      "hierarchical_one_peer"};

template <class T>
const T& one_of(const std::vector<T>& all, Rng& rng) {
  return all[rng.below(all.size())];
}

int between(int low, int high, Rng& rng) {
  return low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
}

std::vector<int> some_of(int workers, int count, Rng& rng) {
  std::vector<int> all;
  for (int rank = 0; rank < workers; ++rank) all.push_back(rank);
  rng.shuffle(std::span(all));
  all.resize(static_cast<std::size_t>(std::min(workers, count)));
  return all;
}

/// Mostly one.
int how_many(int most, Rng& rng) {
  const std::uint64_t kind = rng.below(8);
  if (kind < 5 || most < 2) return 1;
  return kind < 7 ? 2 : between(1, most, rng);
}

std::vector<int> links_of(const Plan& plan, Rng& rng) {
  if (plan.hosts < 3 || rng.below(2) == 0) return {};
  std::vector<int> pair = some_of(plan.hosts, 2, rng);
  return {pair[0] + 1, pair[1] + 1};
}

std::vector<int> victims_of(Kind kind, const Plan& plan, Rng& rng) {
  if (is_of_links(kind)) return links_of(plan, rng);
  if (kind == Kind::host) return {between(1, plan.hosts, rng)};
  if (kind == Kind::disk) return {};
  if (kind == Kind::stop && rng.below(4) == 0) return some_of(plan.workers, plan.workers, rng);
  const bool several = kind == Kind::kill || kind == Kind::stop || kind == Kind::clock;
  return some_of(plan.workers, several ? how_many(plan.workers - 1, rng) : 1, rng);
}

double amount_of(Kind kind, Rng& rng) {
  if (kind == Kind::delay) return between(5, 60, rng);
  if (kind == Kind::rate) return between(5, 50, rng);
  if (kind == Kind::loss) return between(1, 15, rng);
  if (kind == Kind::clock) return (rng.below(2) == 0 ? -1 : 1) * between(30, 100'000, rng);
  return 0;
}

Event event_of(Kind kind, const Plan& plan, Rng& rng) {
  Event event{kind, victims_of(kind, plan, rng)};
  event.round = between(5, 84, rng) * (plan.lenet ? 12 : 1);
  event.delay_us = between(0, 3999, rng);
  const bool lasts = kind != Kind::kill && kind != Kind::start && kind != Kind::end &&
                     kind != Kind::memory && kind != Kind::save && kind != Kind::host;
  if (lasts) event.length_s = between(2, is_of_links(kind) ? 22 : 20, rng) / 10.0;
  event.amount = amount_of(kind, rng);
  return event;
}

/// Whether it can happen beside other events, in the same kind of run.
bool fits_beside(Kind kind, const Plan& plan) {
  switch (kind) {
    case Kind::kill:
    case Kind::stop:
      return true;
    case Kind::slow:
    case Kind::clock:
      return !plan.is_training();
    case Kind::cut:
    case Kind::delay:
    case Kind::rate:
    case Kind::loss:
      return plan.hosts > 1;
    default:
      return false;
  }
}

bool stands_alone(Kind kind) {
  return kind == Kind::start || kind == Kind::end || kind == Kind::memory || kind == Kind::host;
}

void add_events(Plan& plan, Kind first, const Wish& wish, Rng& rng) {
  plan.events = {event_of(first, plan, rng)};
  if (stands_alone(first)) return;
  for (std::uint64_t more = rng.below(3); more > 0; --more) {
    const Kind kind = one_of(wish.kinds, rng);
    if (fits_beside(kind, plan)) plan.events.push_back(event_of(kind, plan, rng));
  }
}

void draw_machine(Plan& plan, Kind kind, const Wish& wish, Rng& rng) {
  const bool needs_hosts = is_of_links(kind) || kind == Kind::host || wish.always;
  if (wish.hosts > 1 && !is_of_training(kind) && (needs_hosts || rng.below(4) == 0))
    plan.hosts = wish.always ? wish.hosts : between(2, wish.hosts, rng);
  const int most = plan.hosts > 1 ? most_on_hosts : rng.below(3) == 0 ? most_workers : few_workers;
  plan.workers =
      between(std::max(2, plan.hosts), is_of_training(kind) ? most_in_training : most, rng);
  if (plan.hosts > 1) {
    plan.path = one_of<std::string>({"pull", "two_sided", "measured"}, rng);
    plan.large = plan.workers <= most_with_large_weights && rng.below(2) == 0;
  }
  plan.devices = wish.devices && !is_of_training(kind);
  plan.lenet = wish.lenet;
  if (plan.lenet) plan.workers = between(std::max(3, plan.hosts), 4, rng);
}

void draw_setting(Plan& plan, Rng& rng) {
  plan.topology = one_of(plan.rule == "awc_gasloc" ? topologies_of_sites : topologies, rng);
  if (plan.rule == "relay_sum")
    plan.topology = one_of<std::string>({"grid1d", "tree", "star"}, rng);
  plan.staleness = one_of<std::int64_t>({0, 0, 1, 3, -1}, rng);
  plan.rotating = rng.below(2) == 0;
  plan.codec = "identity";
  if (rng.below(2) == 0) {
    const std::vector<std::string_view> names = fast::codec::names();
    plan.codec = std::string(one_of(names, rng));
  }
}

/// From numbers of its own, as draw_features().
void draw_entries(Plan& plan, Rng rng) {
  const bool may = plan.rule == "diloco" || plan.rule == "choco";
  plan.sparse = may && !plan.devices && rng.below(2) == 0;
}

/// From numbers of its own: other choices are the same with and without it.
void draw_features(Plan& plan, Rng rng) {
  plan.learns_suspicion = !plan.lenet && rng.below(4) == 0;
  if (!plan.is_training()) return;
  for (const Feature& feature : features()) {
    const std::uint64_t often = feature.only_with.empty() ? 1 : 3;  // of 4; some fit seldom
    if (rng.below(4) >= often) continue;
    Plan more = plan;
    more.with.push_back(feature.name);
    if (why_no_features(more).empty()) plan = more;
  }
}

/// What the library runs and theory says nothing of.
std::string why_no_theory(const Plan& plan, const fast::algorithm::RuleTraits& rule,
                          const fast::Schedule& schedule) {
  if (rule.topology.scope != fast::algorithm::Scope::neighbors) return "";
  if (fast::living_parts(schedule, {}).size() > 1) return "the topology is in parts";
  if (rule.name == "gradient_exchange" && plan.topology != "complete")
    return "gradient_exchange diverges where 1 plus the adjacency has negative eigenvalues";
  if (rule.name == "decentlam" && (plan.staleness != 0 || !schedule.is_static()))
    return "decentlam with a momentum of .9 diverges with stale reads and with one neighbor";
  const bool directed = schedule.is_static() && !schedule.at(0).is_symmetric();
  if (rule.name == "gradient_tracking" && directed &&
      (plan.staleness != 0 || plan.workers > most_tracking_directed))
    return "gradient_tracking diverges on a directed ring at this rate";
  if (rule.name == "quasi_global_momentum" && directed &&
      plan.workers > (plan.staleness == 0 ? most_momentum_directed : most_momentum_stale))
    return "quasi_global_momentum diverges on a directed ring at this rate";
  return "";
}

std::string why_refused(const Plan& plan, const fast::WorkerOptions& options,
                        const fast::Schedule& schedule) {
  const auto& rule = options.algorithm.traits();
  try {
    fast::worker::check_options(options, rule);
    fast::fitting_weights(schedule, rule, options.weights, false, options.staleness);
    if (plan.rotating) fast::check_for_rotation(options);
    return plan.devices ? fast::why_not_on_device(options) : "";
  } catch (const fast::Error& error) {
    return error.what();
  }
}

bool has_neighbors(const std::string& rule) {
  return fast::algorithm::by_name(rule).traits().topology.scope ==
         fast::algorithm::Scope::neighbors;
}

}  // namespace

std::vector<Kind> default_kinds(bool hosts) {
  std::vector<Kind> kinds = all_kinds();
  std::erase_if(kinds,
                [hosts](Kind kind) { return (kind == Kind::host || is_of_links(kind)) && !hosts; });
  return kinds;
}

std::string why_not(const Plan& plan) try {
  const fast::WorkerOptions options = options_of(plan);
  const auto& rule = options.algorithm.traits();
  const fast::Schedule schedule = fast::topology_from(plan.topology).make(plan.workers);
  const bool exchanges = rule.topology.scope == fast::algorithm::Scope::neighbors;
  if (!exchanges && (plan.staleness != 0 || plan.codec != "identity" || plan.topology != "ring"))
    return "it has no neighbors";
  if (plan.workers < plan.hosts) return "a host without a worker";
  if (static_cast<int>(plan.killed().size()) >= plan.workers) return "no survivor";
  if (plan.sparse && plan.rule != "diloco" && plan.rule != "choco")
    return "diloco and choco alone send few entries";
  const std::string no_features = why_no_features(plan);
  if (!no_features.empty()) return no_features;
  const std::string refused = why_refused(plan, options, schedule);
  return refused.empty() ? why_no_theory(plan, rule, schedule) : refused;
} catch (const fast::Error& error) {
  return error.what();
}

Plan with_workers(Plan plan, int workers) {
  plan.workers = workers;
  for (Event& event : plan.events) {
    if (is_of_links(event.kind) || event.kind == Kind::host || event.victims.empty()) continue;
    for (int& victim : event.victims) victim %= workers;
    std::sort(event.victims.begin(), event.victims.end());
    event.victims.erase(std::unique(event.victims.begin(), event.victims.end()),
                        event.victims.end());
  }
  return plan;
}

Plan draw(const Wish& wish, std::uint64_t seed, std::uint64_t index) {
  std::vector<std::pair<std::string, Kind>> pairs;
  for (const std::string& rule : wish.rules) {
    for (const Kind kind : wish.kinds) pairs.emplace_back(rule, kind);
  }
  Rng order(fast::mix_seed(seed, index / pairs.size(), 1));
  order.shuffle(std::span(pairs));
  const auto& [rule, kind] = pairs[index % pairs.size()];
  Rng rng(fast::mix_seed(seed, index));
  Plan plan;
  plan.rule = rule;
  plan.seed = fast::mix_seed(seed, index, 2) >> 32;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Plan tried = plan;
    draw_machine(tried, kind, wish, rng);
    if (has_neighbors(rule)) draw_setting(tried, rng);
    if (bound_of(rule).everybody) tried.topology = "ring";
    add_events(tried, kind, wish, rng);
    draw_features(tried, Rng(fast::mix_seed(seed, index, 3)));
    draw_entries(tried, Rng(fast::mix_seed(seed, index, 4)));
    if (why_not(tried).empty()) return tried;
  }
  plan.topology = bound_of(rule).fallback;
  plan.devices = wish.devices;
  plan.hosts = is_of_links(kind) || kind == Kind::host || wish.always ? wish.hosts : 1;
  plan.workers = std::max(4, plan.hosts);
  plan.events = {event_of(kind, plan, rng)};
  return plan;
}

}  // namespace chaos
