#include "fast_sim/options.hpp"

#include <charconv>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>

#include "cli/program.hpp"
#include "staleness.hpp"

namespace fast_sim {
namespace {

using namespace fast;
using simulation::Pattern;
using tools::offer;

void add_run(CLI::App& app, Options& o) {
  offer(app.add_option("--topology", o.topology, "Topology: a name or a file (torus2d)"),
        tools::topology_words());
  app.add_option("-n,--workers", o.workers, "Number of workers (16)")
      ->check(CLI::Range(1, 1'000'000));
  offer(app.add_option("--exchange", o.exchange,
                       "neighbors, ring, doubling, halving (all-reduces) or none"),
        {"neighbors", "ring", "doubling", "halving", "none"});
  offer(app.add_option("--algorithm", o.algorithm,
                       "Algorithm of fast-train: when it publishes (awc)"),
        tools::rule_words());
  offer(app.add_option("--staleness", o.staleness, "Staleness bound, or inf (0)"), {"inf"});
  app.add_option("--payload", o.payload_bytes, "Bytes of a message (4e6)");
  app.add_option("--rounds", o.rounds, "Rounds (100)");
  app.add_option("--seed", o.seed, "Seed of jitter and failures (1)");
}

void add_steps(CLI::App& app, Options& o) {
  app.add_option("--step", o.step_s, "Seconds of a step (0.1)");
  app.add_option("--jitter", o.jitter, "Lognormal: standard deviation of the logarithm (0)");
  app.add_option("--slow", o.slow, "WORKER:FACTOR, also several times");
  offer(app.add_option("--measured", o.measured,
                       "Steps of a run of fast-train: its directory (--out)"),
        {"<directory>"});
  app.add_option("--failures", o.failures_per_hour, "Failures of a worker in an hour (0)");
  app.add_option("--absent", o.absent_s, "Seconds until a failed worker is back (60)");
  app.add_option("--suspect-after", o.suspect_after_s,
                 "Seconds until neighbors go on without it (5)");
}

void add_network(CLI::App& app, Options& o) {
  offer(app.add_option("--model", o.model, "simgrid, or recurrence: messages do not share links"),
        {"simgrid", "recurrence"});
  offer(app.add_option("--platform", o.platform.kind,
                       "star, fat_tree, dragonfly, sites, or a platform of SimGrid (.xml)"),
        {"star", "fat_tree", "dragonfly", "sites", "<file>"});
  app.add_option("--workers-per-host", o.workers_per_host, "Workers on each host (1)");
  app.add_option("--bandwidth", o.platform.bandwidth, "Bytes per second of a link (1.25e9)");
  app.add_option("--latency", o.platform.latency_s, "Seconds of a link (25e-6)");
  app.add_option("--memory-bandwidth", o.memory_bandwidth, "Bytes per second in a host (1e10)");
  app.add_option("--sites", o.platform.sites, "Sites of the platform sites (2)");
  app.add_option("--wan-bandwidth", o.platform.wan_bandwidth, "Bytes per second (1.25e8)");
  app.add_option("--wan-latency", o.platform.wan_latency_s, "Seconds between sites (0.01)");
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::pair<int, double> slow_worker(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto worker = number<int>(std::string_view(text).substr(0, colon));
  const auto factor = colon == std::string::npos
                          ? std::nullopt
                          : number<double>(std::string_view(text).substr(colon + 1));
  require(worker && factor, ErrorKind::argument, "--slow: \"{}\" is not WORKER:FACTOR", text);
  return {*worker, *factor};
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

}  // namespace

void add_options(CLI::App& app, Options& options) {
  add_run(app, options);
  add_steps(app, options);
  add_network(app, options);
  app.add_option("--links", options.links, "Links of the table, most used first (10)");
  app.add_flag("--json", options.json, "Print JSON");
}

simulation::Workload workload_of(const Options& o) {
  const Pattern pattern = simulation::pattern_by_name(o.exchange);
  require(o.workers_per_host >= 1, ErrorKind::argument,
          "--workers-per-host: {}; at least 1 is needed", o.workers_per_host);
  simulation::Workload load{schedule_of(o, pattern)};
  load.pattern = pattern;
  load.staleness = tools::staleness_of(o.staleness);
  load.publish_point = algorithm::by_name(o.algorithm).declaration().publish_point;
  load.payload_bytes = o.payload_bytes;
  load.rounds = o.rounds;
  load.work.seconds = o.step_s;
  load.work.jitter = o.jitter;
  load.work.seed = o.seed;
  for (const std::string& text : o.slow) load.work.slow.insert(slow_worker(text));
  if (!o.measured.empty()) load.work.measured = simulation::measured_steps(o.measured);
  load.failures = {o.failures_per_hour, o.absent_s, o.suspect_after_s, o.seed};
  return load;
}

}  // namespace fast_sim
