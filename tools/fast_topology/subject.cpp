#include "fast_topology/subject.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <optional>
#include <utility>

#include "mixing/rows.hpp"

namespace fast_topology {

using namespace fast;

namespace {

/// The largest difference between a weight of the product over a period and 1/n.
double distance_from_average(const Subject& subject) {
  const int n = subject.schedule.workers();
  double worst = 0;
  for (int column = 0; column < n; ++column) {
    std::vector<double> x(static_cast<std::size_t>(n));
    x[static_cast<std::size_t>(column)] = 1;
    for (std::int64_t t = 0; t < subject.schedule.period(); ++t) {
      x = times(mixing_rows(subject.schedule.at(t), subject.rule, subject.lazy), x);
    }
    for (const double value : x) worst = std::max(worst, std::abs(value - 1.0 / n));
  }
  return worst;
}

bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

std::optional<std::string> warning_of_period(const Subject& subject) {
  const int n = subject.schedule.workers();
  if (subject.schedule.name() != "one_peer_exponential" || is_power_of_two(n) || n > 400) {
    return std::nullopt;
  }
  return fmt::format(
      "{} workers are no power of two: one period is not the exact average, the largest weight is "
      "off by {:.4f}; base2 is exact for any number of workers",
      n, distance_from_average(subject));
}

}  // namespace

Subject subject_of(const std::string& name, const Options& options) {
  require(options.momentum >= 0 && options.momentum < 1, ErrorKind::argument,
          "--momentum {}: a number from 0 to below 1 is required", options.momentum);
  const TopologyRule rule = topology_from(name);
  int workers = options.workers;
  if (workers == 0) workers = rule.natural_workers();
  Schedule schedule = rule.make(workers == 0 ? usual_workers : workers);
  if (options.weights != "fastest") {
    return {std::move(schedule), weight_rule_by_name(options.weights), options.lazy};
  }
  require(schedule.is_static(), ErrorKind::topology,
          "weights fastest: {} changes from round to round; take a static topology", name);
  return {fastest_mixing(schedule.at(0)), WeightRule::automatic, options.lazy};
}

std::vector<double> matrix_of(const Subject& subject, std::int64_t round) {
  return mixing_matrix(subject.schedule.at(round), subject.rule, subject.lazy);
}

std::vector<std::string> warnings_of(const Subject& subject, const Analysis& analysis) {
  std::vector<std::string> warnings = analysis.check.findings;
  if (const auto warning = warning_of_period(subject)) warnings.push_back(*warning);
  if (analysis.gap && analysis.gap->value < 1e-12) {
    warnings.push_back(analysis.rounds_to_consensus
                           ? "the gap is not above 0 and gives no rate; rounds are measured from a "
                             "random start"
                           : "the gap is 0: workers do not come to agree with these weights");
  }
  return warnings;
}

}  // namespace fast_topology
