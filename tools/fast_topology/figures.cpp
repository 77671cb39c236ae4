#include "fast_topology/figures.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
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
using nlohmann::ordered_json;

namespace {

ordered_json json_of(const std::optional<Figure>& figure) {
  return figure ? ordered_json(figure->value) : ordered_json();
}

/// The names of the figures that are bounds.
ordered_json bounds_of(const Analysis& a) {
  ordered_json bounds = ordered_json::array();
  const std::pair<const char*, const std::optional<Figure>*> figures[] = {
      {"gap", &a.gap},
      {"smallest_eigenvalue", &a.smallest_eigenvalue},
      {"diameter", &a.diameter},
      {"rounds_to_1e-3", &a.rounds_to_consensus}};
  for (const auto& [name, figure] : figures) {
    if (*figure && (*figure)->is_bound) bounds.push_back(name);
  }
  return bounds;
}

std::int64_t rounds_shown(const Analysis& a) { return std::max<std::int64_t>(1, a.period); }

void line(const char* label, const std::string& value) { fmt::print("{:<24}{}\n", label, value); }

const char* doubly_stochastic(const MixingCheck& check) {
  if (check.doubly_stochastic()) return "yes";
  return check.doubly_stochastic_on_average() ? "on average over the rounds" : "no";
}

void print_graph(const Analysis& a) {
  line("topology", a.name);
  line("workers", std::to_string(a.workers));
  line("rounds before repeating", a.period == 0 ? "never repeats" : std::to_string(a.period));
  line("neighbors read a round", neighbors_of(a));
  line("directed", a.directed ? "yes" : "no");
}

void print_mixing(const Analysis& a) {
  line("doubly stochastic", doubly_stochastic(a.check));
  line("gap", shown(a.gap, "at most"));
  line("smallest eigenvalue", shown(a.smallest_eigenvalue, "at most"));
  line("diameter", shown(a.diameter, "at least"));
  line("rounds to 1e-3",
       shown(a.rounds_to_consensus, a.rounds_are_measured ? "about" : "at least"));
}

/// For the options that were given.
void print_training(const Analysis& a, const Options& options) {
  if (a.smallest_eigenvalue) {
    const double smallest = a.smallest_eigenvalue->value;
    line("stable for", fmt::format("learning rate x curvature < {:.3g} (awc), {:.3g} (atc), {:.3g} "
                                   "(averaged_momentum); momentum {}",
                                   awc_stability_factor(smallest, options.momentum),
                                   atc_stability_factor(smallest, options.momentum),
                                   averaged_momentum_stability_factor(smallest, options.momentum),
                                   options.momentum));
  }
  if (options.parameters > 0) {
    line("bytes read a round",
         fmt::format("{:.4g} MB a worker ({:.4g} f32 parameters)",
                     4e-6 * options.parameters * a.average_edges, options.parameters));
  }
}

void print_matrix(const Subject& subject, std::int64_t round) {
  fmt::print("\nround {}\n", round);
  const std::vector<double> matrix = matrix_of(subject, round);
  const auto columns = static_cast<std::size_t>(subject.schedule.workers());
  for (std::size_t k = 0; k < matrix.size(); ++k) {
    fmt::print("{:7.4f}{}", matrix[k], (k + 1) % columns == 0 ? "\n" : " ");
  }
}

}  // namespace

std::string shown(const std::optional<Figure>& figure, const char* bound, int digits) {
  if (!figure) return "-";
  return fmt::format("{}{:.{}g}", figure->is_bound ? std::string(bound) + " " : "", figure->value,
                     digits);
}

std::string neighbors_of(const Analysis& a) {
  if (a.least_degree == a.most_degree) return std::to_string(a.most_degree);
  return fmt::format("{} to {}", a.least_degree, a.most_degree);
}

ordered_json json_of(const Analysis& a, const Subject& subject, const Options& options) {
  ordered_json json = {{"name", a.name},
                       {"workers", a.workers},
                       {"period", a.period},
                       {"degree", {{"least", a.least_degree}, {"most", a.most_degree}}},
                       {"directed", a.directed},
                       {"connected", a.check.connected},
                       {"doubly_stochastic", a.check.doubly_stochastic()},
                       {"doubly_stochastic_on_average", a.check.doubly_stochastic_on_average()},
                       {"symmetric", a.check.symmetric},
                       {"gap", json_of(a.gap)},
                       {"smallest_eigenvalue", json_of(a.smallest_eigenvalue)},
                       {"diameter", json_of(a.diameter)},
                       {"rounds_to_1e-3", json_of(a.rounds_to_consensus)},
                       {"bounds", bounds_of(a)}};
  if (a.smallest_eigenvalue) {
    const double smallest = a.smallest_eigenvalue->value;
    json["awc_stability_factor"] = awc_stability_factor(smallest, options.momentum);
    json["atc_stability_factor"] = atc_stability_factor(smallest, options.momentum);
    json["averaged_momentum_stability_factor"] =
        averaged_momentum_stability_factor(smallest, options.momentum);
  }
  if (options.parameters > 0) {
    json["bytes_read_per_round"] = 4 * options.parameters * a.average_edges;
  }
  json["warnings"] = warnings_of(subject, a);
  if (!options.matrix) return json;
  for (std::int64_t t = 0; t < rounds_shown(a); ++t)
    json["matrix"].push_back(matrix_of(subject, t));
  return json;
}

void print(const Analysis& a, const Subject& subject, const Options& options) {
  print_graph(a);
  print_mixing(a);
  print_training(a, options);
  for (const std::string& warning : warnings_of(subject, a)) fmt::print("note: {}\n", warning);
  if (!options.matrix) return;
  for (std::int64_t t = 0; t < rounds_shown(a); ++t) print_matrix(subject, t);
}

}  // namespace fast_topology
