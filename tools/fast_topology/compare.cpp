#include <algorithm>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology_tools/picture.hpp>
#include <utility>

#include "core/say.hpp"
#include "fast_topology/commands.hpp"
#include "fast_topology/figures.hpp"

namespace fast_topology {

using namespace fast;
using nlohmann::ordered_json;

namespace {

struct Compared {
  Analysis analysis;
  Subject subject;
};

/// Those without a number come last.
double rounds_of(const Compared& each) {
  return each.analysis.rounds_to_consensus ? each.analysis.rounds_to_consensus->value : 1e300;
}

/// Those that can be made, best first. A name that does not exist is an error.
std::vector<Compared> all_of(const Options& options) {
  std::vector<Compared> found;
  for (const std::string& name : options.names) static_cast<void>(topology_from(name));
  for (const std::string& name : options.names) {
    try {
      Subject subject = subject_of(name, options);
      found.push_back({analyze(subject.schedule, subject.rule, subject.lazy), subject});
    } catch (const Error& error) {
      fast::say("left out: {}\n", error.what());
    }
  }
  require(!found.empty(), ErrorKind::topology, "compare: none of the topologies can be made");
  std::stable_sort(found.begin(), found.end(), [](const Compared& a, const Compared& b) {
    return rounds_of(a) < rounds_of(b);
  });
  return found;
}

void print_json(const std::vector<Compared>& found, const Options& options) {
  ordered_json all = ordered_json::array();
  for (const Compared& each : found) all.push_back(json_of(each.analysis, each.subject, options));
  fmt::print("{}\n", all.dump(2));
}

std::string gap_of(const Analysis& a) {
  if (!a.gap) return "-";
  const double gap = a.gap->value;
  return gap > 0 && gap < 1e-5 ? fmt::format("{:.2e}", gap) : fmt::format("{:.5f}", gap);
}

/// In fewer digits if the column is too narrow.
std::string rounds_text(const Analysis& a, std::size_t width) {
  const char* bound = a.rounds_are_measured ? "~" : ">=";
  const std::string text = shown(a.rounds_to_consensus, bound);
  return text.size() <= width ? text : shown(a.rounds_to_consensus, bound, 3);
}

void print_row(const Compared& each) {
  const Analysis& a = each.analysis;
  fmt::print(
      "{:<28}{:>10.3g}{:>12}{:>10} {:>9}{:>14}\n", a.name, a.average_edges, gap_of(a),
      shown(a.diameter, ">="), rounds_text(a, 9),
      a.rounds_to_consensus ? fmt::format("{:.4g}", rounds_of(each) * a.average_edges) : "-");
}

void print_table(const std::vector<Compared>& found) {
  fmt::print("{:<28}{:>10}{:>12}{:>10}{:>10}{:>14}\n", "topology", "neighbors", "gap", "diameter",
             "rounds", "reads to 1e-3");
  for (const Compared& each : found) print_row(each);
  fmt::print(
      "\nrounds: until disagreement has shrunk to 1/1000, worst start (~: measured). reads: "
      "models that a worker reads until then.\n");
}

void draw_curves(const std::vector<Compared>& found, const Options& options) {
  std::vector<Curve> curves;
  for (const auto& [a, subject] : found) {
    curves.push_back(
        {a.name, consensus_curve(subject.schedule, options.rounds, subject.rule, subject.lazy)});
  }
  write(options.svg,
        svg_curves(fmt::format("Consensus, {} workers", found[0].analysis.workers), curves));
}

}  // namespace

void compare(const Options& options) {
  const std::vector<Compared> found = all_of(options);
  if (options.json) {
    print_json(found, options);
  } else {
    print_table(found);
  }
  if (!options.svg.empty()) draw_curves(found, options);
}

}  // namespace fast_topology
