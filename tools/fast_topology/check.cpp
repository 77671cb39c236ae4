#include <algorithm>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <fast/worker/requirements.hpp>

#include "fast_topology/commands.hpp"

namespace fast_topology {

using namespace fast;

namespace {

constexpr int most_checked_workers = 100'000;
constexpr double most_checked_values = 1e8;

/// Throws Error(topology) when the algorithm would not run with these weights as they are.
void check_fits(const Schedule& schedule, const std::string& name, const Options& options) {
  const algorithm::RuleTraits rule = algorithm::by_name(name).traits();
  const WeightRule weights = weight_rule_for(rule, schedule, weight_rule_by_name(options.weights));
  require_mixing(schedule, weights, options.lazy, requirements(rule), name);
}

int workers_of(const TopologyRule& rule, const std::string& path, const Options& options) {
  int workers = options.workers != 0 ? options.workers : rule.natural_workers();
  if (workers == 0) workers = usual_workers;
  require(workers <= most_checked_workers, ErrorKind::topology,
          "{}: key \"workers\" or \"sides\": {} workers, at most {} are checked", path, workers,
          most_checked_workers);
  return workers;
}

/// A check takes as long as there are values to read.
void require_checkable(const Schedule& schedule, const std::string& path) {
  const double reads = 1.0 * schedule.at(0).in_degree(0) * schedule.workers() *
                       std::max<double>(1, static_cast<double>(schedule.period()));
  require(reads < most_checked_values, ErrorKind::topology,
          "{}: key \"workers\": {} workers read about {:.1g} values, {:g} can be checked; give "
          "--workers",
          path, schedule.workers(), reads, most_checked_values);
}

bool check_file(const std::string& path, const Options& options) try {
  const TopologyRule rule = load_topology(path);
  const Schedule schedule = rule.make(workers_of(rule, path, options));
  require_checkable(schedule, path);
  const MixingCheck found =
      check_mixing(schedule, weight_rule_by_name(options.weights), options.lazy);
  if (!options.algorithm.empty()) check_fits(schedule, options.algorithm, options);
  fmt::print("{}: {} with {} workers: {}\n", printable(path), printable(schedule.name()),
             schedule.workers(), found.connected ? "connected" : "not connected");
  for (const std::string& finding : found.findings) fmt::print("  note: {}\n", finding);
  return found.connected;
} catch (const Error& error) {
  if (error.kind() == ErrorKind::argument) throw;
  fmt::print("{}: refused: {}\n", printable(path), error.what());
  return false;
}

}  // namespace

bool check(const Options& options) {
  bool sound = true;
  for (const std::string& file : options.names) sound = check_file(file, options) && sound;
  return sound;
}

}  // namespace fast_topology
