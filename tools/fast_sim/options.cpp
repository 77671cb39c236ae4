#include "fast_sim/options.hpp"

#include <cmath>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>

#include "core/text.hpp"
#include "staleness.hpp"

namespace fast_sim {
namespace {

using namespace fast;
using simulation::Pattern;
using tools::Command;
using tools::offer;

void add_run(Command& command, Options& o) {
  command.begin_group("Run", "fast-sim -n 64 --topology exponential --staleness 2 --rounds 50");
  offer(command.add_option("--topology", o.topology, "topology: a name or a file"),
        tools::topology_words());
  tools::restrict<int>(command.add_option("-n,--workers", o.workers, "number of workers"),
                       {.low = 1, .high = 1'000'001, .text = "a {} from 1 to 1000000"});
  offer(command.add_option("--exchange", o.exchange,
                           "neighbors, ring, doubling or halving (all-reduces), or none"),
        {"neighbors", "ring", "doubling", "halving", "none"});
  offer(command.add_option("--algorithm", o.algorithm,
                           "algorithm of fast-train; it says when a worker publishes"),
        tools::rule_words());
  offer(command.add_option("--staleness", o.staleness,
                           "how many rounds old a neighbor's weights may be, or inf"),
        {"inf"});
  command.add_option("--payload", o.payload_bytes, "bytes of a message");
  command.add_option("--rounds", o.rounds, "rounds");
  tools::restrict<std::uint64_t>(
      command.add_option("--seed", o.seed, "seed of jitter and failures"), options::any());
}

void add_steps(Command& command, Options& o) {
  command.begin_group("Steps", "fast-sim --step 0.02 --jitter 0.3 --slow 3:2.5");
  command.add_option("--step", o.step_s, "seconds of a step");
  command.add_option("--jitter", o.jitter,
                     "steps are lognormal: standard deviation of the logarithm");
  command.add_option("--slow", o.slow,
                     "WORKER:FACTOR, a worker whose steps take FACTOR times as long; may be "
                     "repeated");
  offer(command.add_option("--measured", o.measured,
                           "take the steps of a run of fast-train: its directory (--out)"),
        {"<directory>"});
}

void add_failures(Command& command, Options& o) {
  command.begin_group("Failures", "fast-sim --failures 5 --absent 30 --failure-timeout 2");
  command.add_option("--failures", o.failures_per_hour, "failures of a worker in an hour");
  command.add_option("--absent", o.absent_s, "seconds until a failed worker is back");
  command.add_option("--failure-timeout,--suspect-after", o.suspect_after_s,
                     "seconds until neighbors go on without a failed worker");
}

void add_network(Command& command, Options& o) {
  command.begin_group("Network", "fast-sim --platform fat_tree --bandwidth 1.25e8");
  tools::restrict(
      command.add_option("--model", o.model, "simgrid, or recurrence: messages do not share links"),
      {"simgrid", "recurrence"});
  offer(command.add_option("--platform", o.platform.kind,
                           "star, fat_tree, dragonfly, sites, or a platform of SimGrid (.xml)"),
        {"star", "fat_tree", "dragonfly", "sites", "<file>"});
  command.add_option("--workers-per-host", o.workers_per_host, "workers on each host");
  command.add_option("--bandwidth", o.platform.bandwidth, "bytes per second of a link");
  command.add_option("--latency", o.platform.latency_s, "seconds of a link");
  command.add_option("--memory-bandwidth", o.memory_bandwidth, "bytes per second in a host");
  tools::restrict<int>(
      command.add_option("--cores", o.cores,
                         "cores of a host that copy messages, one at a time; 0: as many as needed"),
      {.low = 0, .high = 100'001, .text = "a {} from 0 to 100000"});
  command.add_option("--sites", o.platform.sites, "sites of the platform sites");
  command.add_option("--wan-bandwidth", o.platform.wan_bandwidth,
                     "bytes per second of a link between sites");
  command.add_option("--wan-latency", o.platform.wan_latency_s, "seconds of a link between sites");
}

void add_output(Command& command, Options& o) {
  command.begin_group("Output", "fast-sim -n 64 --links 3 --json");
  tools::restrict<std::size_t>(
      command.add_option("--links", o.links, "links of the table, most used first"),
      options::zero_or_more());
  command.add_flag("--json", o.json, "print JSON");
}

std::pair<int, double> slow_worker(const std::string& text) {
  const std::vector<std::string_view> parts = split_text(text, ':');
  std::pair<int, double> slow;
  require(parts.size() == 2 && reads(parts[0], slow.first) && reads(parts[1], slow.second),
          ErrorKind::argument, "--slow: \"{}\"; WORKER:FACTOR is required, for example 3:2.5",
          text);
  return slow;
}

void check_network(const Options& o) {
  const std::pair<const char*, double> bandwidths[] = {
      {"--bandwidth", o.platform.bandwidth},
      {"--wan-bandwidth", o.platform.wan_bandwidth},
      {"--memory-bandwidth", o.memory_bandwidth}};
  for (const auto& [name, value] : bandwidths) {
    require(value > 0 && std::isfinite(value), ErrorKind::argument,
            "{}: {}; a finite number above 0 is required", name, value);
  }
  const std::pair<const char*, double> latencies[] = {{"--latency", o.platform.latency_s},
                                                      {"--wan-latency", o.platform.wan_latency_s}};
  for (const auto& [name, value] : latencies) {
    require(value >= 0 && std::isfinite(value), ErrorKind::argument,
            "{}: {}; a finite number, 0 or more, is required", name, value);
  }
}

std::vector<int> hosts_of(const Options& o) {
  std::vector<int> hosts;
  for (int worker = 0; worker < o.workers; ++worker) hosts.push_back(worker / o.workers_per_host);
  return hosts;
}

Schedule schedule_of(const Options& o, Pattern pattern) {
  if (pattern == Pattern::neighbors) {
    return topology_on_hosts(o.topology, hosts_of(o)).make(o.workers);
  }
  return Topology("none", std::vector<std::vector<int>>(static_cast<std::size_t>(o.workers)));
}

bool is_of_neighbors(const algorithm::RuleTraits& rule) {
  return rule.topology.scope == algorithm::Scope::neighbors;
}

algorithm::RuleTraits rule_of(const Options& o, Pattern pattern) {
  algorithm::RuleTraits rule = algorithm::by_name(o.algorithm).traits();
  require(
      pattern != Pattern::neighbors || is_of_neighbors(rule), ErrorKind::argument,
      "--algorithm: {} does not exchange with neighbors; choose another one, or give --exchange "
      "ring, doubling, halving or none",
      o.algorithm);
  return rule;
}

}  // namespace

void add_options(Command& command, Options& options) {
  add_run(command, options);
  add_steps(command, options);
  add_failures(command, options);
  add_network(command, options);
  add_output(command, options);
}

namespace {

using Names = std::vector<std::string>;

/// Throws Error(argument) for the first of the options that was given.
void refuse(const Command& command, const Names& names, const char* why) {
  for (const std::string& name : names) {
    require(command.get_option(name)->count() == 0, ErrorKind::argument, "{}: without effect: {}",
            name, why);
  }
}

}  // namespace

void check_effects(const Command& command, const Options& o) {
  if (o.exchange != "neighbors") {
    Names names{"--topology", "--staleness", "--failure-timeout"};
    if (is_of_neighbors(algorithm::by_name(o.algorithm).traits())) names.push_back("--algorithm");
    refuse(command, names, "only neighbors have it; leave it out, or take --exchange neighbors");
  }
  if (o.platform.kind != "sites") {
    refuse(command, {"--sites", "--wan-bandwidth", "--wan-latency"},
           "this network has no sites; leave it out, or take --platform sites");
  }
  if (o.model == "recurrence") {
    refuse(command, {"--cores"}, "the recurrence has none; leave it out, or take --model simgrid");
  }
  if (o.failures_per_hour == 0) {
    refuse(command, {"--absent", "--failure-timeout"},
           "nobody fails in this run; leave it out, or take --failures");
  }
}

simulation::Workload workload_of(const Options& o) {
  const Pattern pattern = simulation::pattern_by_name(o.exchange);
  require(o.workers_per_host >= 1, ErrorKind::argument,
          "--workers-per-host: {}; at least 1 is required", o.workers_per_host);
  check_network(o);
  simulation::Workload load{schedule_of(o, pattern)};
  load.pattern = pattern;
  load.staleness = tools::staleness_of(o.staleness);
  load.publish_point = rule_of(o, pattern).timing.publish_point;
  load.payload_bytes = o.payload_bytes;
  load.rounds = o.rounds;
  load.work.seconds = o.step_s;
  load.work.jitter = o.jitter;
  load.work.seed = o.seed;
  for (const std::string& text : o.slow) {
    const auto slow = slow_worker(text);
    require(load.work.slow.insert(slow).second, ErrorKind::argument,
            "--slow: worker {} is given twice; give it once", slow.first);
  }
  if (!o.measured.empty()) load.work.measured = simulation::measured_steps(o.measured);
  load.failures = {o.failures_per_hour, o.absent_s, o.suspect_after_s, o.seed};
  return load;
}

}  // namespace fast_sim
