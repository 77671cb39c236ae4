#include "fast_topology/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/group.hpp>
#include <fast/nn/backend.hpp>
#include <fast/simulation/plan.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology_tools/picture.hpp>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "measure/measured_cluster.hpp"
#include "nn/shape.hpp"
#include "staleness.hpp"
#include "topology/hosts.hpp"

using namespace fast;
using fast::simulation::Candidate;
using fast::simulation::Cluster;
using fast::simulation::Plan;
using fast::simulation::planned_speed;
using fast::simulation::SitePlan;
using nlohmann::ordered_json;

namespace fast_topology {

using tools::MeasuredCluster;
using tools::offer;
using tools::restrict;
using tools::staleness_text;

namespace {

constexpr Seconds start_limit{60};
constexpr Seconds plan_limit{3600};
constexpr Seconds measure_limit{60};
constexpr Seconds step_budget{2};
constexpr int classes = 10;

/// Steps on random samples.
std::function<void()> step_of(const std::string& model, int batch_size) {
  const nn::ModelSpec spec = nn::model_by_name(model, classes);
  const auto count = static_cast<std::size_t>(batch_size);
  std::vector<float> inputs(count * static_cast<std::size_t>(nn::elements_of(spec.input)));
  Rng rng(1);
  for (float& value : inputs) value = static_cast<float>(rng.uniform());
  std::vector<std::int32_t> labels(count);
  for (std::size_t k = 0; k < count; ++k) labels[k] = static_cast<std::int32_t>(k % classes);
  std::shared_ptr<Backend> backend = nn::make_backend<float>(spec, 1);
  return [=, shape = spec.input] { backend->train(Batch{inputs, labels, shape}); };
}

std::string seconds_text(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.4g}", *seconds) : "-";
}

ordered_json json_of(const Candidate& c) {
  return {{"exchange", c.exchange},
          {"staleness", c.staleness ? ordered_json(staleness_text(*c.staleness)) : ordered_json()},
          {"codec", c.codec},
          {"every", c.every},
          {"seconds_per_round", c.round_s},
          {"waiting_share", c.waiting_share},
          {"mean_age", c.mean_age},
          {"seconds_to_consensus", c.consensus_s ? ordered_json(*c.consensus_s) : ordered_json()},
          {"effective_neighbors", c.effective_neighbors},
          {"relative_rounds", c.relative_rounds},
          {"relative_seconds", c.relative_seconds}};
}

const Candidate& first(const Plan& plan, bool is_allreduce) {
  for (const Candidate& c : plan.candidates) {
    if (c.is_allreduce() == is_allreduce) return c;
  }
  return plan.candidates.front();
}

std::string described(const Candidate& c) {
  if (!c.staleness) return c.exchange;
  return fmt::format("{}, staleness {}, {}{}", c.exchange, staleness_text(*c.staleness), c.codec,
                     c.every > 1 ? fmt::format(", every {} steps", c.every) : "");
}

// The plan in one sentence.
std::string verdict(const Plan& plan) {
  const Candidate& best = plan.candidates.front();
  const Candidate& other = first(plan, !best.is_allreduce());
  if (best.is_allreduce() == other.is_allreduce()) return fmt::format("best: {}", described(best));
  const Candidate& neighbors = best.is_allreduce() ? other : best;
  return fmt::format(
      "best: {}; {} needs {:.3g} times as long; {} needs {:.3g} times the rounds of "
      "exact averages",
      described(best), described(other), other.relative_seconds, neighbors.exchange,
      neighbors.relative_rounds);
}

// Empty unless the cluster was measured.
ordered_json json_of(const MeasuredCluster& described) {
  const auto& [cluster, links] = described;
  if (links.seconds == 0) return {};
  ordered_json pairs = ordered_json::array();
  for (const HostPairFigures& pair : links.pairs) {
    pairs.push_back({{"hosts", {pair.first, pair.second}},
                     {"latency_s", pair.latency_s},
                     {"bandwidth", pair.bandwidth}});
  }
  return {{"seconds", links.seconds},
          {"hosts", cluster.hosts},
          {"workers_per_host", cluster.workers_per_host},
          {"link_latency_s", links.latency_s},
          {"link_bandwidth", links.bandwidth},
          {"bandwidth_of_one_worker", links.lone_bandwidth},
          {"link_jitter", links.jitter},
          {"memory_bandwidth", links.memory_bandwidth},
          {"step_s", cluster.step_s},
          {"step_jitter", cluster.step_jitter},
          {"payload_bytes", cluster.payload_bytes},
          {"pairs", pairs}};
}

void print_json(const Plan& plan, const MeasuredCluster& described) {
  ordered_json json = {{"workers", described.cluster.workers()},
                       {"verdict", verdict(plan)},
                       {"left_out", plan.left_out},
                       {"notes", plan.notes}};
  if (const ordered_json measured = json_of(described); !measured.empty()) {
    json["measured"] = measured;
  }
  for (const Candidate& c : plan.candidates) json["candidates"].push_back(json_of(c));
  fmt::print("{}\n", json.dump(2));
}

void draw(const Plan& plan, const Cluster& cluster, const std::string& path) {
  const Candidate& best = first(plan, false);
  require(!best.is_allreduce(), ErrorKind::topology, "--svg: no topology could be planned");
  std::vector<int> hosts;
  for (int rank = 0; rank < cluster.workers(); ++rank)
    hosts.push_back(rank / cluster.workers_per_host);
  const Schedule schedule = topology_on_hosts(best.exchange, hosts).make(cluster.workers());
  write_whole(path, svg_picture(schedule, fmt::format("{}: {:.4g} s a round", described(best),
                                                      best.round_s)));
}

void print_row(std::size_t place, const Candidate& c) {
  const std::string staleness = c.staleness ? staleness_text(*c.staleness) : "-";
  fmt::print("{:>4}  {:<24}{:>9}  {:<10}{:>5}{:>9.4g}{:>8.1f} %{:>12}{:>10.4g}{:>9.3g}{:>9.3g}\n",
             place, c.exchange, staleness, c.codec, c.every, c.round_s, 100 * c.waiting_share,
             seconds_text(c.consensus_s), c.effective_neighbors, c.relative_rounds,
             c.relative_seconds);
}

void print_table(const Plan& plan, std::size_t most) {
  fmt::print("{:>4}  {:<24}{:>9}  {:<10}{:>5}{:>9}{:>10}{:>12}{:>10}{:>9}{:>9}\n", "", "exchange",
             "staleness", "codec", "every", "s/round", "waiting", "s to 1e-3", "neighbors",
             "rounds", "seconds");
  for (std::size_t k = 0; k < plan.candidates.size(); ++k) {
    if (k < most || plan.candidates[k].is_allreduce()) print_row(k + 1, plan.candidates[k]);
  }
  for (const std::string& line : plan.left_out) fmt::print("left out: {}\n", printable(line));
  for (const std::string& line : plan.notes) fmt::print("note: {}\n", printable(line));
}

/// Throws for a name that does not exist and a file that cannot be read.
void check_names(const std::vector<std::string>& topologies) {
  for (const std::string& name : topologies) static_cast<void>(topology_from(name));
}

std::string every_text(std::optional<std::int64_t> every) {
  return every ? std::to_string(*every) : "-";
}

/// What to give the sites: of those that never wait the plan with the shortest way to an exchange.
std::string verdict(const std::vector<SitePlan>& plans, const simulation::PlannedSites& sites,
                    const std::string& topology) {
  const auto shortest = std::ranges::min_element(plans, {}, [](const SitePlan& plan) {
    return plan.every_never.value_or(std::numeric_limits<std::int64_t>::max());
  });
  std::vector<int> workers;
  for (const auto& site : sites.sites) workers.push_back(site.workers);
  const std::string samples = fmt::format(
      "give each site its number of workers, {}, by --site-samples", fmt::join(workers, ", "));
  if (shortest == plans.end() || !shortest->every_never) return samples;
  return fmt::format(
      "shortest without waiting: --site-every {} --site-codec {} --site-staleness inf{}; {}",
      *shortest->every_never, shortest->codec,
      topology == "ring" ? "" : " --site-topology " + topology, samples);
}

void print_sites(const simulation::PlannedSites& sites, const std::string& topology,
                 const std::vector<std::string>& codecs, bool json) {
  const std::vector<SitePlan> plans =
      simulation::plan_sites(sites, topology, codecs, planned_speed);
  if (json) {
    ordered_json rows = ordered_json::array();
    for (const SitePlan& p : plans) {
      rows.push_back(
          {{"codec", p.codec},
           {"message_bytes", p.message_bytes},
           {"exchange_s", p.exchange_s},
           {"every_waiting", p.every_waiting},
           {"every_delayed", p.every_delayed},
           {"every_never_waiting", p.every_never ? ordered_json(*p.every_never) : ordered_json()}});
    }
    fmt::print("{}\n", ordered_json({{"verdict", verdict(plans, sites, topology)},
                                     {"speed", planned_speed},
                                     {"plans", rows}})
                           .dump(2));
    return;
  }
  fmt::print(
      "{} sites, {}: --site-every at least, for a speed of {} and an age of at most twice as many "
      "rounds; all figures are computed\n",
      sites.sites.size(), topology, planned_speed);
  fmt::print("{:<12}{:>10}{:>12}{:>10}{:>22}{:>16}\n", "codec", "MB", "s/exchange", "waiting",
             "waiting, delay H - 1", "never waiting");
  for (const SitePlan& p : plans)
    fmt::print("{:<12}{:>10.4g}{:>12.4g}{:>10}{:>22}{:>16}\n", p.codec, p.message_bytes / 1e6,
               p.exchange_s, p.every_waiting, p.every_delayed, every_text(p.every_never));
  fmt::print("{}\n", verdict(plans, sites, topology));
}

/// The options of --measure, the cluster on which the ranks run, and what they ask for.
class MeasureCommand {
 public:
  /// `cluster`: the file of a cluster that is not measured.
  MeasureCommand(tools::Command& command, std::string& cluster) {
    command.begin_group("Cluster", "fast-topology plan --cluster my.toml");
    offer(command.add_option("--cluster", cluster, "a TOML file that describes the cluster"),
          {"<file>"});
    command.begin_group("Measurement",
                        "fastrun -n 8 fast-topology plan --measure --write-cluster my.toml");
    command.add_flag(
        "--measure", asked_,
        "measure the cluster: start one rank for each worker, under fastrun or mpiexec");
    add_measurement(command);
  }

  /// Throws Error(argument) for options that ask for nothing without --measure.
  void check_unused() const {
    for (const CLI::Option* option : of_measurement_) {
      require(
          option->count() == 0, ErrorKind::argument,
          "plan: {} belongs to --measure; add --measure, or leave it out: the file of --cluster "
          "states step_s and payload_bytes",
          option->get_name());
    }
  }

  /// Collective. Links, step time and payload. The same cluster on every rank. Throws the same
  /// Error on every rank.
  MeasuredCluster measure(const mpi::Communicator& world) const {
    const fast::Group group(world);
    tools::ClusterMeasurement asked;
    agree(group, Deadline(measure_limit), "plan --measure", [&] {
      check(group);
      asked.payload_bytes =
          4 * (parameters_
                   ? *parameters_
                   : static_cast<double>(nn::parameter_count(nn::model_by_name(model_, classes))));
    });
    asked.hosts = group.hosts();
    asked.steps = [&] {
      return step_ms_ ? tools::StepTimes{*step_ms_ / 1e3, 0}
                      : tools::time_steps(step_of(model_, batch_size_), step_budget);
    };
    asked.links.budget = Seconds(budget_s_);
    return tools::measure_cluster(world, group, asked);
  }

  /// Writes the cluster, if that is asked for. Throws Error(resource).
  void write(const MeasuredCluster& measured) const {
    if (write_cluster_.empty()) return;
    write_whole(write_cluster_,
                "# Written by fast-topology plan --measure\n" + cluster_text(measured.cluster));
  }

 private:
  void add_measurement(tools::Command& command) {
    of_measurement_ = {
        offer(command.add_option("--write-cluster", write_cluster_,
                                 "write what was measured to a file for --cluster"),
              {"<file>"}),
        restrict<double>(command.add_option("--step-ms", step_ms_,
                                            "milliseconds of a step; without it, steps of --model"),
                         {.low = 1e-6, .high = 1e9, .text = "a {}, 1e-6 or more and below 1e9,"}),
        command.add_option("--model", model_, "a model of fast-train by name"),
        restrict<int>(command.add_option("--batch-size", batch_size_, "samples of a measured step"),
                      {.low = 1, .high = 1'000'001, .text = "a {} from 1 to 1000000"}),
        restrict<double>(command.add_option("--parameters", parameters_,
                                            "parameters; without it, those of --model"),
                         {.low = 1, .high = 2.5e13, .text = "a {}, 1 or more and below 2.5e13,"}),
        restrict<double>(command.add_option("--measure-s", budget_s_, "seconds for the links"),
                         {.low = 0.1, .high = 601, .text = "a {}, 0.1 or more and below 601,"})};
  }

  void check(const fast::Group& group) const {
    const HostSizes sizes(group.hosts());
    require(group.size() > 1, ErrorKind::argument,
            "plan --measure: there is one rank; start one for each worker: fastrun -n 4 "
            "fast-topology plan --measure");
    require(sizes.are_equal(), ErrorKind::argument,
            "plan --measure: the hosts have {} to {} ranks; start as many on each", sizes.least,
            sizes.most);
    require(
        !model_.ends_with(".toml"), ErrorKind::argument,
        "--model: {} is a file; give a model by name, or --step-ms and --parameters in its place",
        printable(model_));
    if (!write_cluster_.empty() && group.rank() == 0) require_writable(write_cluster_);
  }

  std::vector<const CLI::Option*> of_measurement_;  ///< that ask for nothing without --measure
  bool asked_ = false;
  std::string write_cluster_, model_ = "lenet";
  std::optional<double> step_ms_, parameters_;
  int batch_size_ = 64;
  double budget_s_ = 10;
};

/// The options of the subcommand.
class Planning {
 public:
  explicit Planning(tools::Command& program)
      : command_(
            program.add_command("plan", "Ranks topologies, staleness and codecs for a cluster.")),
        measure_(command_, cluster_) {
    command_.begin_group("Sites", "fast-topology plan --sites sites.toml");
    offer(command_.add_option("--sites", sites_,
                              "a TOML file that describes sites at several places: how many steps "
                              "between two exchanges keep their speed"),
          {"<file>"});
    for (const std::int64_t bound : options_.staleness) staleness_.push_back(staleness_text(bound));
    add_candidates();
    add_output();
  }

  tools::Command& command() const { return command_; }

  void run(const mpi::Communicator* world) const {
    if (world == nullptr) {
      if (!sites_.empty()) return plan_sites();
      measure_.check_unused();
      require(!cluster_.empty(), ErrorKind::argument,
              "plan: give --cluster FILE, --sites FILE, or --measure under fastrun or mpiexec");
      check_names(options_.topologies);
      return print({simulation::load_cluster(cluster_), {}});
    }
    const fast::Group group(*world);
    agree(group, Deadline(start_limit), "plan", [&] {
      require(cluster_.empty(), ErrorKind::argument,
              "plan: --cluster and --measure exclude each other; leave one out");
      require(sites_.empty(), ErrorKind::argument,
              "plan: --sites and --measure exclude each other; leave one out");
      static_cast<void>(plan_options());
      if (group.rank() == 0) check_names(options_.topologies);
      if (!svg_.empty() && group.rank() == 0) require_writable(svg_);
    });
    const MeasuredCluster measured = measure_.measure(*world);
    agree(group, Deadline(plan_limit), "plan", [&] {
      if (group.rank() != 0) return;
      measure_.write(measured);
      if (!json_) fmt::print("{}", text_of(measured));
      print(measured);
      std::fflush(stdout);
    });
  }

 private:
  /// Of the other options, only those that it takes may be given.
  void plan_sites() const {
    constexpr std::string_view taken[] = {"--sites", "--topologies", "--codecs", "--json"};
    bool has_codecs = false;
    for (const CLI::Option* option : command_.get_options()) {
      if (option->count() == 0) continue;
      require(contains(taken, option->get_name()), ErrorKind::argument,
              "plan: --sites and {} exclude each other; leave one out", option->get_name());
      has_codecs = has_codecs || option->get_name() == "--codecs";
    }
    require(options_.topologies.size() <= 1, ErrorKind::argument,
            "plan: --sites takes one of --topologies; it is that of --site-topology");
    print_sites(simulation::load_sites(sites_),
                options_.topologies.empty() ? "ring" : options_.topologies.front(),
                has_codecs ? options_.codecs : std::vector<std::string>(), json_);
  }

  void add_candidates() {
    command_.begin_group("Candidates",
                         "fast-topology plan --cluster my.toml --topologies ring,torus2d");
    offer(command_
              .add_option("--topologies", options_.topologies,
                          "names or files; without it, the usual ones")
              ->delimiter(','),
          tools::topology_words());
    command_.add_option("--staleness", staleness_, "bounds, with inf for none")->delimiter(',');
    command_.add_option("--codecs", options_.codecs, "codecs")->delimiter(',');
    offer(command_.add_option("--algorithm", options_.algorithm, "algorithm of fast-train"),
          tools::rule_words());
    command_.add_option("--algorithm-option", parameters_,
                        "KEY=VALUE, an option of the algorithm; may be repeated");
  }

  void add_output() {
    command_.begin_group("Simulation and output",
                         "fast-topology plan --cluster my.toml --rounds 200 --rows 5");
    restrict<int>(command_.add_option("--rounds", options_.rounds, "simulated rounds"),
                  {.low = 1, .high = 100'001, .text = "a {} from 1 to 100000"});
    restrict<std::uint64_t>(command_.add_option("--seed", options_.seed, "seed of the jitter"),
                            options::any());
    restrict<std::size_t>(
        command_.add_option("--rows", rows_, "rows of the table; all-reduces are always shown"),
        options::zero_or_more());
    command_.add_flag("--json", json_, "print JSON");
    offer(command_.add_option("--svg", svg_, "write a picture of the best topology"), {"<file>"});
  }

  simulation::PlanOptions plan_options() const {
    simulation::PlanOptions options = options_;
    options.staleness.clear();
    for (const std::string& text : staleness_) {
      options.staleness.push_back(tools::staleness_of(text));
    }
    options.parameters = algorithm::parameters_from(parameters_);
    return options;
  }

  void print(const MeasuredCluster& described) const {
    const Cluster& cluster = described.cluster;
    const Plan plan = simulation::plan(cluster, plan_options());
    if (!svg_.empty()) draw(plan, cluster, svg_);
    if (json_) return print_json(plan, described);
    fmt::print("{} workers on {} {}; all figures are simulated\n", cluster.workers(), cluster.hosts,
               cluster.hosts == 1 ? "host" : "hosts");
    print_table(plan, rows_);
    fmt::print("{}\n", verdict(plan));
  }

  tools::Command& command_;
  std::string cluster_, sites_, svg_;
  MeasureCommand measure_;
  simulation::PlanOptions options_;  ///< besides the next two
  std::vector<std::string> staleness_, parameters_;
  std::size_t rows_ = 15;
  bool json_ = false;
};

}  // namespace

PlanCommand add_plan(tools::Command& program) {
  const auto planning = std::make_shared<Planning>(program);
  return {planning->command(),
          [planning](const mpi::Communicator* world) { planning->run(world); }};
}

}  // namespace fast_topology
