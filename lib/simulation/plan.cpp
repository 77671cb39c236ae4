#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/mixing/check.hpp>
#include <fast/simulation/plan.hpp>
#include <fast/topology/load.hpp>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "codec/block.hpp"
#include "codec/sparse.hpp"
#include "core/contains.hpp"
#include "simulation/host_flows.hpp"
#include "topology/hosts.hpp"
#include "topology/placement.hpp"
#include "worker/site_codec.hpp"
#include "worker/start/requirements.hpp"

namespace fast::simulation {
namespace {

constexpr int longest_delay = 16;
constexpr double most_planned_edges = 4e7;
constexpr double much_longer = 1.1;            // than a step, of a round
constexpr std::int64_t most_local_steps = 64;  // docs/reference/local-steps.md measures 50
constexpr double filled_by_bursts = 0.5;       // of a slow link, by TCP: measured by bench/sites.sh

double link_factor(const Cluster& cluster, std::int64_t round, int from, int to) {
  if (cluster.link_jitter == 0) return 1;
  const auto pair = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
  return lognormal_factor(cluster.link_jitter, 0x11ce, static_cast<std::uint64_t>(round), pair);
}

/// Of a message that shares its link with so many as `flows` says.
template <class Flows>
TransferTime transfer_time(const Cluster& cluster, const Flows& flows) {
  return [=](std::int64_t round, int from, int to, double size_bytes) {
    if (from / cluster.workers_per_host == to / cluster.workers_per_host)
      return size_bytes / cluster.memory_bandwidth;
    const double factor = link_factor(cluster, round, from, to);
    return cluster.link_latency_s +
           factor * size_bytes * flows(round, from, to) / cluster.link_bandwidth;
  };
}

std::vector<int> hosts_of(const Cluster& cluster) {
  std::vector<int> hosts;
  for (int r = 0; r < cluster.workers(); ++r) hosts.push_back(r / cluster.workers_per_host);
  return hosts;
}

double coded_payload(const Cluster& cluster, codec::Kind kind,
                     const algorithm::Sparsity& sparsity) {
  const auto parameters = static_cast<std::size_t>(cluster.payload_bytes / sizeof(float));
  if (sparsity.bounded()) {
    const codec::SparseShape shape{sparsity.of(parameters), sizeof(float), kind, parameters};
    return static_cast<double>(shape.size_bytes());
  }
  if (kind == codec::Kind::identity) return cluster.payload_bytes;
  return static_cast<double>(codec::coded_bytes(kind, parameters));
}

WorkTimes steps_of(const Cluster& cluster, const PlanOptions& options) {
  WorkTimes work;
  work.seconds = cluster.step_s;
  work.jitter = cluster.step_jitter;
  work.seed = options.seed;
  return work;
}

// Rounds of the same work that take so long.
RoundFigures lasting(RoundFigures figures, double seconds) {
  figures.waiting_share = std::max(0.0, 1 - (1 - figures.waiting_share) * figures.mean_s / seconds);
  figures.mean_s = seconds;
  return figures;
}

// What a schedule can do at some delay.
struct Mixing {
  double neighbors = 1;
  std::optional<double> rounds;
};

class Planner {
 public:
  Planner(const Cluster& cluster, const PlanOptions& options)
      : cluster_(cluster),
        options_(options),
        rule_(algorithm::by_name(options.algorithm, options.parameters).traits()) {
    require(rule_.topology.scope == algorithm::Scope::neighbors, ErrorKind::argument,
            "plan: the algorithm {} does not exchange with neighbors; choose a rule that averages "
            "with neighbors, for example awc",
            options.algorithm);
    for (const std::string& codec : options.codecs) static_cast<void>(codec::by_name(codec));
    require(!options.staleness.empty() && !options.codecs.empty(), ErrorKind::argument,
            "plan: give at least one staleness and one codec");
  }

  Plan make() {
    add_allreduce(Pattern::ring_allreduce, "all-reduce (ring)");
    add_allreduce(Pattern::doubling_allreduce, "all-reduce (doubling)");
    add_allreduce(Pattern::halving_allreduce, "all-reduce (halving)");
    std::vector<std::string> names = options_.topologies;
    if (names.empty()) names = usual_topologies();
    for (const std::string& name : names) try_topology(name);
    if (!crowded_.empty())
      plan_.notes.push_back(fmt::format(
          "rounds that are longer than steps, and the most messages at once on the link of a host: "
          "{}",
          fmt::join(crowded_, ", ")));
    if (needs_local_steps()) add_local_steps();
    rank();
    return std::move(plan_);
  }

 private:
  void add_allreduce(Pattern pattern, const std::string& name) {
    Workload load{Topology("alone", std::vector<std::vector<int>>(workers())), pattern};
    load.payload_bytes = cluster_.payload_bytes;
    load.rounds = options_.rounds;
    load.work = steps_of(cluster_, options_);
    const RoundFigures figures = recur(load, allreduce_links(cluster_, pattern));
    const auto at_once = [](std::int64_t, int, int, double) { return 0.0; };
    allreduce_s_ = std::min(allreduce_s_, figures.mean_s);
    const double steps_s = recur(load, at_once).mean_s;  // of the slowest worker in each round
    steps_s_ = steps_s;
    const double hidden_s = cluster_.allreduce_overlap * cluster_.step_s;
    Candidate candidate;
    candidate.exchange = name;
    candidate.codec = "identity";
    candidate.round_s = std::max(steps_s, figures.mean_s - hidden_s);
    candidate.waiting_share = figures.waiting_share;
    candidate.consensus_s = candidate.round_s;
    candidate.effective_neighbors = cluster_.workers();
    plan_.candidates.push_back(candidate);
  }

  std::vector<std::string> usual_topologies() const {
    if (rule_.topology.needs_sites) return {"sites", "hierarchical_one_peer"};
    return planned_topologies();
  }

  std::size_t workers() const { return static_cast<std::size_t>(cluster_.workers()); }

  void try_topology(const std::string& name) try {
    const Schedule made = topology_on_hosts(name, hosts_of(cluster_)).make(cluster_.workers());
    const double edges = 1.0 * made.at(0).in_degree(0) * cluster_.workers();
    require(edges <= most_planned_edges, ErrorKind::topology, "{} messages a round are too many",
            edges);
    const Schedule schedule = placed(made, place(made, hosts_of(cluster_)).worker_of_rank);
    require(check_mixing(schedule).doubly_stochastic_on_average(), ErrorKind::topology,
            "its weights do not preserve the mean");
    weights_ = fitting_weights(made, rule_, WeightRule::automatic, false);
    known_.clear();
    const std::size_t first = plan_.candidates.size();
    for (const std::int64_t staleness : options_.staleness) {
      if (staleness > 0 && !rule_.timing.why_synchronous.empty()) continue;
      if (!fits(made, name, staleness)) continue;
      for (const std::string& codec : options_.codecs) {
        if (takes(codec, made)) add(made, schedule, name, staleness, codec);
      }
    }
    if (first < plan_.candidates.size() && plan_.candidates[first].round_s > much_longer * steps_s_)
      crowded_.push_back(fmt::format("{} ({}) {}", name, plan_.candidates[first].codec,
                                     most_at_once(schedule, cluster_.workers_per_host)));
  } catch (const Error& error) {
    if (!options_.topologies.empty() && error.kind() != ErrorKind::topology) throw;
    plan_.left_out.push_back(fmt::format("{}: {}", name, error.what()));
  }

  /// In a plan of what is usual.
  bool needs_local_steps() const {
    const bool is_usual = options_.topologies.empty() && options_.parameters.empty() &&
                          options_.algorithm == PlanOptions().algorithm;
    return is_usual && std::ranges::none_of(plan_.candidates, [&](const Candidate& c) {
             return !c.is_allreduce() && planned_speed * c.round_s <= steps_s_;
           });
  }

  void add_local_steps() {
    plan_.notes.push_back(fmt::format(
        "no exchange with neighbors in every step keeps {} of the speed: local steps are planned, "
        "too (--algorithm gasloc --algorithm-option period=H, with H of the column every; codecs "
        "need --algorithm-option changes=true)",
        planned_speed));
    const std::vector<std::string> left_out = plan_.left_out;
    for (std::int64_t every = 2; every <= most_local_steps; every *= 2) {
      for (const bool changes : {false, true}) {
        rule_ = algorithm::gasloc({.period = every, .changes = changes}).traits();
        for (const char* name : {"ring", "hierarchical_one_peer"}) try_topology(name);
      }
    }
    plan_.left_out = left_out;  // the same topologies, again
  }

  bool fits(const Schedule& made, const std::string& name, std::int64_t staleness) try {
    static_cast<void>(fitting_weights(made, rule_, WeightRule::automatic, false, staleness));
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::topology) throw;
    plan_.left_out.push_back(fmt::format("{} at staleness {}: {}", name, staleness, error.what()));
    return false;
  }

  void add(const Schedule& made, const Schedule& schedule, const std::string& name,
           std::int64_t staleness, const std::string& codec) {
    Workload load{schedule};
    load.staleness = staleness;
    load.publish_point =
        has_local_steps() ? algorithm::PublishPoint::after_step : rule_.timing.publish_point;
    load.payload_bytes = message_bytes(codec::by_name(codec).kind);
    load.rounds = options_.rounds;
    load.work = steps_of(cluster_, options_);
    const auto steps = static_cast<double>(rule_.timing.combine_every);
    load.work.seconds *= steps;
    load.work.jitter /= std::sqrt(steps);
    const RoundFigures figures = with_averages(on_links(recur(load, early_links(schedule)), load));
    Candidate candidate;
    candidate.exchange = name;
    candidate.staleness = staleness;
    candidate.codec = codec;
    candidate.every = rule_.timing.combine_every;
    candidate.round_s = figures.mean_s / steps;
    candidate.waiting_share = figures.waiting_share;
    candidate.mean_age = figures.mean_age;
    const Mixing& mixing = mixing_at(made, figures.mean_age);
    if (mixing.rounds) candidate.consensus_s = *mixing.rounds * figures.mean_s;
    candidate.effective_neighbors = mixing.neighbors;
    candidate.relative_rounds =
        relative_rounds(mixing.neighbors, cluster_.workers(), critical_workers());
    plan_.candidates.push_back(candidate);
  }

  // In a round, all messages pass the busiest link. Above staleness 0, workers are in different
  // rounds, and the recurrence does not know that messages of two rounds share it. A static
  // schedule then sends fewer messages.
  RoundFigures on_links(const RoundFigures& figures, const Workload& load) const {
    const std::int64_t period = load.schedule.period_or(looked_at_of_endless);
    if (load.staleness >= period) return figures;
    const double messages = busiest_link(load.schedule, cluster_.workers_per_host);
    const double least_s = messages * load.payload_bytes / cluster_.link_bandwidth;
    return figures.mean_s < least_s ? lasting(figures, least_s) : figures;
  }

  // One of so many combinations is an all-reduce in place of an exchange with neighbors.
  RoundFigures with_averages(const RoundFigures& figures) const {
    if (rule_.timing.average_every == 0) return figures;
    const double share = 1.0 / static_cast<double>(rule_.timing.average_every);
    const double average_s =
        allreduce_s_ + static_cast<double>(rule_.timing.combine_every - 1) * cluster_.step_s;
    return lasting(figures, figures.mean_s + share * (average_s - figures.mean_s));
  }

  bool takes(const std::string& codec, const Schedule& made) const {
    const codec::Kind kind = codec::by_name(codec).kind;
    if (kind == codec::Kind::identity) return true;
    if (shards_of(made.at(0)) != nullptr) return false;  // shards travel as they are
    return rule_.precision.why_exact.empty() && codec::bits(kind) >= rule_.precision.least_bits;
  }

  bool has_local_steps() const { return rule_.timing.combine_every > 1; }

  double message_bytes(codec::Kind kind) const {
    const algorithm::Selection& selection = rule_.messages.selection;
    const int vectors =
        rule_.messages.by_edge ? 1 : rule_.messages.vectors;  // that an edge carries
    if (!selection.selects())
      return coded_payload(cluster_, kind, rule_.messages.sparsity) * vectors;
    return coded_payload(cluster_, codec::code_of_entries(kind), {}) /
           static_cast<double>(selection.size);
  }

  // What is published some steps before the end of the local steps arrives so much earlier.
  TransferTime early_links(const Schedule& schedule) const {
    const bool before_last =
        has_local_steps() && rule_.timing.publish_point == algorithm::PublishPoint::before_step;
    const double early_s =
        static_cast<double>(rule_.timing.delay + (before_last ? 1 : 0)) * cluster_.step_s;
    return [early_s, links = shared_links(cluster_, schedule)](std::int64_t round, int from, int to,
                                                               double size_bytes) {
      return links(round, from, to, size_bytes) - early_s;
    };
  }

  double critical_workers() const {
    return cluster_.critical_workers > 0 ? cluster_.critical_workers : cluster_.workers();
  }

  const Mixing& mixing_at(const Schedule& schedule, double mean_age) {
    const int delay = static_cast<int>(std::lround(std::min<double>(mean_age, longest_delay)));
    const auto found = known_.find(delay);
    if (found != known_.end()) return found->second;
    Mixing mixing;
    constexpr double least_decay = 1e-9;
    const auto steps = static_cast<double>(rule_.timing.combine_every);
    const double decay = std::max(least_decay, std::pow(cluster_.decay, steps));
    if (rule_.messages.by_edge) {
      const RelayMixing relayed = relay_mixing(schedule, decay);
      return known_.emplace(delay, Mixing{relayed.neighbors, relayed.rounds}).first->second;
    }
    mixing.neighbors = effective_neighbors(schedule, decay, delay, weights_.rule, weights_.lazy);
    mixing.rounds = rounds_to_consensus(schedule, delay, weights_.rule, weights_.lazy);
    return known_.emplace(delay, mixing).first->second;
  }

  void rank() {
    const auto seconds = [](const Candidate& c) { return c.relative_rounds * c.round_s; };
    std::ranges::stable_sort(plan_.candidates, [&](const Candidate& a, const Candidate& b) {
      return seconds(a) < seconds(b);
    });
    keep_best_steps();
    const double best = seconds(plan_.candidates.front());
    for (Candidate& c : plan_.candidates) c.relative_seconds = seconds(c) / best;
  }

  /// Of the numbers of local steps that differ in nothing else, the first.
  void keep_best_steps() {
    std::vector<Candidate> kept;
    for (Candidate& c : plan_.candidates) {
      const bool is_known = c.every > 1 && std::ranges::any_of(kept, [&](const Candidate& k) {
                              return k.every > 1 && k.exchange == c.exchange &&
                                     k.staleness == c.staleness && k.codec == c.codec;
                            });
      if (!is_known) kept.push_back(std::move(c));
    }
    plan_.candidates = std::move(kept);
  }

  const Cluster& cluster_;
  const PlanOptions& options_;
  algorithm::RuleTraits rule_;
  Plan plan_;
  double steps_s_ = 0;  // of the slowest worker in each round
  std::vector<std::string> crowded_;
  double allreduce_s_ = std::numeric_limits<double>::infinity();  // the fastest, with its step
  // Of one schedule: the weights with which the rule runs, and what they can do by delay.
  FittingWeights weights_;
  std::map<int, Mixing> known_;
};

}  // namespace

std::vector<std::string> planned_topologies() {
  return {"ring",  "torus2d", "exponential", "one_peer_exponential",
          "base2", "equidyn", "complete",    "hierarchical_one_peer"};
}

double relative_rounds(double effective_neighbors, int workers, double critical_workers) {
  return (1 + critical_workers / effective_neighbors) / (1 + critical_workers / workers);
}

TransferTime shared_links(const Cluster& cluster, const Schedule& schedule) {
  return transfer_time(
      cluster,
      [flows = std::make_shared<RoundFlows>(schedule, cluster.workers_per_host)](
          std::int64_t round, int from, int to) { return flows->between(round, from, to); });
}

TransferTime allreduce_links(const Cluster& cluster, Pattern pattern) {
  return transfer_time(
      cluster,
      [flows = std::make_shared<StepFlows>(pattern, cluster.workers(), cluster.workers_per_host)](
          std::int64_t, int from, int to) { return flows->between(from, to); });
}

Plan plan(const Cluster& cluster, const PlanOptions& options) {
  return Planner(cluster, options).make();
}

namespace {

bool sends_differences(codec::Kind kind) {
  constexpr int least_bits = 8;  // of a codec without them
  return kind == codec::Kind::sparse || codec::bits(kind) < least_bits;
}

/// Of one after the first.
double message_bytes(const PlannedSites& sites, const SiteCodec& codec) {
  const Cluster model{.payload_bytes = sites.payload_bytes};
  if (codec.kind != codec::Kind::sparse) return coded_payload(model, codec.kind, {});
  return coded_payload(model, codec::Kind::identity, {.fraction = codec.fraction});
}

bool fits(const PlannedSites& sites, const SiteCodec& codec) {
  return codec.kind != codec::Kind::sparse ||
         message_bytes(sites, codec) < message_bytes(sites, {codec::Kind::bf16});
}

SiteCodec known_codec(const PlannedSites& sites, const std::string& name) {
  const auto codec = site_codec(name);
  require(codec.has_value(), ErrorKind::argument,
          "plan: codec {}; sites take {} or sparse=FRACTION", name, fmt::join(site_codecs, ", "));
  require(fits(sites, *codec), ErrorKind::argument,
          "plan: codec {} sends {:g} bytes at each exchange, and bf16 {:g}; take a smaller part",
          name, message_bytes(sites, *codec), message_bytes(sites, {codec::Kind::bf16}));
  return *codec;
}

std::vector<std::string> usual_codecs(const PlannedSites& sites) {
  std::vector<std::string> names = {"identity", "bf16", "int8", "int4", "int2"};
  const SiteCodec sparse{codec::Kind::sparse, 0.01};
  if (fits(sites, sparse)) names.push_back(fmt::format("sparse={}", sparse.fraction));
  return names;
}

/// In which each site reads its neighbors in so many exchanges, one after another. See
/// plan_sites().
double longest_exchange(const PlannedSites& sites, const Schedule& schedule, int exchanges,
                        double message_bytes) {
  const auto site = [&](int place) { return sites.sites[static_cast<std::size_t>(place)]; };
  double longest = 0;
  for (std::int64_t t = 0; t < schedule.period_or(looked_at_of_endless); ++t) {
    std::map<int, std::set<int>> neighbors;
    for (std::int64_t round = t; round < t + exchanges; ++round)
      for (int i = 0; i < schedule.workers(); ++i)
        for (const int j : schedule.at(round).in_neighbors(i)) neighbors[i].insert(j);
    for (const auto& [i, read] : neighbors) {
      for (const int j : read) {
        const auto messages = [&](int at) { return static_cast<double>(neighbors[at].size()); };
        const double transfer_s =
            message_bytes / filled_by_bursts *
            std::max(messages(i) / site(i).bandwidth, messages(j) / site(j).bandwidth);
        longest = std::max(longest, 3 * (site(i).latency_s + site(j).latency_s) + transfer_s);
      }
    }
  }
  return longest;
}

}  // namespace

std::vector<SitePlan> plan_sites(const PlannedSites& sites, const std::string& topology,
                                 const std::vector<std::string>& codecs, double speed) {
  const Schedule schedule = topology_from(topology).make(static_cast<int>(sites.sites.size()));
  require(schedule.at(0).is_symmetric(), ErrorKind::topology,
          "plan: the edges of {} are directed, and sites read each other; take ring, complete or "
          "random_matchings",
          topology);
  const auto steps = [&](double count) {  // without the last digit of a computed number
    constexpr double most = 1e15;
    const double whole = std::ceil(std::min(most, count * (1 - 1e-12)));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(whole));
  };
  std::vector<SitePlan> plans;
  for (const std::string& codec : codecs.empty() ? usual_codecs(sites) : codecs) {
    const SiteCodec known = known_codec(sites, codec);
    SitePlan plan{codec, message_bytes(sites, known)};
    const codec::Kind kind = known.kind;
    if (sends_differences(kind) && !schedule.is_static()) continue;  // neighbors have to stay
    plan.exchange_s = longest_exchange(sites, schedule, 1, plan.message_bytes);
    const double exchange = plan.exchange_s / sites.step_s;
    plan.every_waiting = steps(exchange * speed / (1 - speed));
    plan.every_delayed = std::max<std::int64_t>(2, steps((exchange + 1) * speed));
    // Sites that never wait also read those of the next exchange.
    const double two = longest_exchange(sites, schedule, 2, plan.message_bytes);
    if (!sends_differences(kind)) plan.every_never = steps(two / sites.step_s);
    plans.push_back(plan);
  }
  return plans;
}

}  // namespace fast::simulation
