#include "fast_train/automatic_topology.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/message.hpp"
#include "measure/measured_cluster.hpp"
#include "topology/hosts.hpp"

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
  const auto it = std::ranges::find_if(
      plan.candidates, [&](const auto& c) { return !c.is_allreduce() && c.exchange == name; });
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
  const auto first = std::ranges::min_element(faster, [](const Candidate* a, const Candidate* b) {
    return consensus_s(*a) < consensus_s(*b);
  });
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

using namespace fast;

namespace {

constexpr char automatic[] = "auto";
constexpr char choosing[] = "fast-train: choosing a topology";
constexpr std::size_t most_planned_workers = 512;  ///< larger plans take many seconds
constexpr std::int64_t planned_rounds = 50;
constexpr Seconds longest_answer{10};

TopologyUse use_of(const Options& o, bool on_gpus = false) {
  const WorkerOptions& worker = o.trainer.worker;
  return {o.rule.rule().traits(), worker.staleness, worker.weights, worker.lazy_weights, on_gpus};
}

/// Empty where links are measured.
std::string why_not_measured(const Trial& trial, const Options& o) {
  const HostSizes sizes(trial.hosts);
  if (o.measure_s == 0) return "--measure-s 0";
  if (use_of(o).rule.topology.needs_sites)
    return "another topology would change the steps between exchanges";
  if (!sizes.are_equal()) return "plans need as many workers on each host";
  if (o.no_placement) return "plans place the ranks, and --no-placement forbids it";
  if (o.trainer.worker.weights != WeightRule::automatic || o.trainer.worker.lazy_weights)
    return "plans know automatic weights only";
  if (trial.hosts.size() > most_planned_workers)
    return fmt::format("plans of more than {} workers take long", most_planned_workers);
  return {};
}

/// What decides whether there is a measurement, in which all ranks must take part.
std::string settings_of(bool is_automatic, const Options& o) {
  const WorkerOptions& worker = o.trainer.worker;
  return fmt::format("{} {} {} {} {} {} {} {}", is_automatic, o.measure_s, o.no_placement, o.spares,
                     static_cast<int>(worker.weights), worker.lazy_weights, o.rule.name,
                     worker.staleness);
}

bool all_equal(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [&](const std::string& each) { return each == texts.front(); });
}

simulation::PlanOptions plan_options(const Options& o) {
  simulation::PlanOptions options;
  options.staleness = {o.trainer.worker.staleness};
  options.codecs = {codec::name(o.trainer.worker.codec)};
  options.algorithm = o.rule.name;
  options.parameters = algorithm::parameters_from(o.rule.options);
  options.rounds = planned_rounds;
  return options;
}

std::vector<std::string> others_that_fit(const Trial& trial, const Options& o) {
  std::vector<std::string> names = compared_topologies();
  std::erase_if(names,
                [&](const std::string& name) { return !suits(name, trial.hosts, use_of(o)); });
  return names;
}

/// Of steps and links, of those who do not take part.
Seconds longest_measurement(const Options& o) {
  return o.trainer.worker.deadline + Seconds(4 * o.measure_s);
}

tools::MeasuredCluster measured(const mpi::Communicator& workers, const Group& group,
                                const Trial& trial, const Options& o) {
  tools::ClusterMeasurement asked;
  asked.hosts = trial.hosts;
  asked.payload_bytes = trial.payload_bytes;
  asked.steps = [&] { return trial.steps(Seconds(o.measure_s / 2)); };
  asked.longest_steps = o.trainer.worker.deadline + Seconds(o.measure_s);
  asked.links.budget = Seconds(o.measure_s);
  asked.links.answer_within = std::min(longest_answer, o.trainer.worker.deadline);
  return tools::measure_cluster(workers, group, asked);
}

/// Of the workers alone: spares wait for the choice.
tools::MeasuredCluster measured_by_workers(const mpi::Communicator& world, const Group& ranks,
                                           const Trial& trial, const Options& o) {
  if (o.spares == 0) return measured(world, ranks, trial, o);
  const bool is_spare = world.rank() >= static_cast<int>(trial.hosts.size());
  const mpi::Communicator part = world.split(is_spare ? 1 : 0, Deadline(o.trainer.worker.deadline));
  return is_spare ? tools::MeasuredCluster{} : measured(part, Group(part), trial, o);
}

std::string figures_of(const tools::MeasuredCluster& measured) {
  const simulation::Cluster& cluster = measured.cluster;
  return fmt::format("measured {:.3g} ms and {} between hosts, steps of {:.3g} ms",
                     1e3 * cluster.link_latency_s, tools::rate_text(cluster.link_bandwidth),
                     1e3 * cluster.step_s);
}

/// "NAME REASON", by the plan.
std::string planned(const tools::MeasuredCluster& measured, const ChosenTopology& usual,
                    const Trial& trial, const Options& o) {
  const PlannedTopology found =
      planned_topology(measured.cluster, usual.name, others_that_fit(trial, o), plan_options(o));
  const std::string& why = found.name == usual.name ? usual.reason : usual.hosts;
  return fmt::format("{} {}; {}: {}", found.name, why, figures_of(measured), found.reason);
}

void print(const Group& ranks, const std::string& name, const std::string& reason) {
  if (ranks.rank() == 0) fast::say("topology: {} ({})\n", name, reason);
}

}  // namespace

std::vector<int> hosts_of_workers(const Group& ranks, const Options& o) {
  if (o.exchange == "local") return std::vector<int>(static_cast<std::size_t>(o.workers));
  std::vector<int> hosts = ranks.hosts();
  if (static_cast<std::size_t>(o.spares) < hosts.size()) {
    hosts.resize(hosts.size() - static_cast<std::size_t>(o.spares));
  }
  return hosts;
}

std::optional<ChosenTopology> choose_by_hosts(const Group& ranks, Options& o) {
  std::optional<ChosenTopology> chosen;
  const Deadline deadline(o.trainer.worker.deadline);
  const bool on_gpus = std::ranges::none_of(ranks.all_gather(o.device, deadline, choosing),
                                            [](const std::string& each) { return each == "cpu"; });
  agree(ranks, deadline, choosing, [&] {
    if (o.topology != automatic) return;
    require(
        o.trainer.worker.robust == Robust::none, ErrorKind::argument,
        "fast-train: --topology auto does not know what robust averaging needs; name a topology "
        "of many neighbors, such as torus2d or complete, or take --robust none");
    chosen = choose_topology(hosts_of_workers(ranks, o), use_of(o, on_gpus));
    o.topology = chosen->name;
  });
  return chosen;
}

void choose_by_links(const mpi::Communicator& world, const Group& ranks,
                     const std::optional<ChosenTopology>& usual, const Trial& trial, Options& o) {
  const Deadline deadline(o.trainer.worker.deadline);
  // Ranks whose options differ find that out later, all together.
  const bool is_agreed =
      all_equal(ranks.all_gather(settings_of(usual.has_value(), o), deadline, choosing));
  if (!usual) return;
  const Options before = o;
  o.measure_s = Options().measure_s;  // config.toml names the topology, which needs none
  if (!is_agreed || HostSizes(trial.hosts).hosts == 1)
    return print(ranks, usual->name, usual->reason);
  if (const std::string why = why_not_measured(trial, before); !why.empty())
    return print(ranks, usual->name, fmt::format("{}; links not measured: {}", usual->reason, why));
  const tools::MeasuredCluster found = measured_by_workers(world, ranks, trial, before);
  // Spares wait here while the workers measure.
  const Deadline afterwards(o.trainer.worker.deadline + longest_measurement(before));
  std::string choice;
  agree(ranks, afterwards, choosing, [&] {
    if (ranks.rank() == 0) choice = planned(found, *usual, trial, o);
  });
  choice = ranks.all_gather(choice, afterwards, choosing).front();
  const std::size_t end = choice.find(' ');
  o.topology = choice.substr(0, end);
  print(ranks, o.topology, choice.substr(end + 1));
}

}  // namespace fast_train
