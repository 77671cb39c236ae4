#include "fast_topology/commands.hpp"

#include <algorithm>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <fast/topology_tools/picture.hpp>
#include <fast/topology_tools/save.hpp>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "fast_topology/figures.hpp"
#include "worker/start/requirements.hpp"

namespace fast_topology {

using tools::Command;
using tools::offer;
using tools::restrict;

namespace {

void add_workers(Command& command, Options& options) {
  restrict<int>(
      command.add_option(
          "-n,--workers", options.workers,
          fmt::format("number of workers; without it, that of the topology or {}", usual_workers)),
      fast::options::one_or_more())
      ->default_str("");
}

void add_weights(Command& command, Options& options, const std::string& help) {
  offer(command.add_option("--weights", options.weights, help),
        {"metropolis", "uniform_rows", "uniform_columns", "given", "automatic", "fastest"});
  command.add_flag("--lazy", options.lazy, "lazy weights, (I + W) / 2");
}

/// What the figures are for.
void add_figures(Command& command, Options& options) {
  command
      .add_option("--parameters", options.parameters,
                  "f32 parameters of the model, for the bytes of a round")
      ->default_str("");
  command.add_option("--momentum", options.momentum, "momentum, for the stability of awc");
}

void add_svg(Command& command, Options& options) {
  offer(command.add_option("--svg", options.svg, "write a picture (- for standard output)"),
        {"<file>"});
}

constexpr char weights_help[] = "rule of the mixing weights, or fastest";

}  // namespace

void add_show_options(Command& command, Options& options) {
  offer(command.add_option("topology", options.names, "a name or a file")->required()->expected(1),
        tools::topology_words());
  command.begin_group("Topology", "fast-topology show ring -n 8 --lazy");
  add_workers(command, options);
  add_weights(command, options, weights_help);
  command.begin_group("Figures", "fast-topology show torus2d -n 16 --parameters 61706");
  add_figures(command, options);
  command.add_flag("--matrix", options.matrix, "print the mixing matrix");
  command.add_flag("--json", options.json, "print JSON");
  command.begin_group("Files", "fast-topology show base2 -n 5 --svg base2.svg");
  add_svg(command, options);
  offer(command.add_option("--dot", options.dot, "write a graphviz file (- for standard output)"),
        {"<file>"});
  offer(command.add_option("--save", options.save,
                           "write topology and weights to a .toml or .mtx file"),
        {"<file>"});
}

void add_compare_options(Command& command, Options& options) {
  offer(command.add_option("topologies", options.names, "names or files")->required(),
        tools::topology_words());
  command.begin_group("Topologies", "fast-topology compare ring torus2d base2 -n 64");
  add_workers(command, options);
  add_weights(command, options, weights_help);
  command.begin_group("Figures", "fast-topology compare ring torus2d --parameters 61706 --json");
  add_figures(command, options);
  command.add_flag("--json", options.json, "print JSON");
  command.begin_group("Files", "fast-topology compare ring torus2d --rounds 100 --svg curves.svg");
  add_svg(command, options);
  restrict<int>(command.add_option("--rounds", options.rounds, "rounds of the curves"),
                {.low = 1, .high = 100'001, .text = "a {} from 1 to 100000"});
}

void add_check_options(Command& command, Options& options) {
  offer(command.add_option("files", options.names, "files")->required(), {"<file>"});
  command.begin_group("Topology", "fast-topology check -n 16 --algorithm d2 --lazy own.toml");
  add_workers(command, options);
  add_weights(command, options, "rule of the mixing weights");
  offer(command.add_option("--algorithm", options.algorithm,
                           "refuse what this algorithm of fast-train cannot run with"),
        tools::rule_words());
}

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

namespace {

constexpr int most_printed_workers = 1000;

std::string caption_of(const Analysis& a) {
  std::string text = fmt::format("{} workers, {} neighbor{} a round", a.workers, neighbors_of(a),
                                 a.most_degree == 1 ? "" : "s");
  if (a.gap) text += fmt::format(", gap {}", shown(a.gap, "at most", 3));
  return text;
}

void write_files(const Options& o, const Subject& subject, const Analysis& analysis) {
  if (!o.save.empty()) {
    write(o.save, topology_text(subject.schedule, o.save, subject.rule, subject.lazy));
  }
  if (!o.dot.empty()) write(o.dot, dot_picture(subject.schedule));
  if (!o.svg.empty()) write(o.svg, svg_picture(subject.schedule, caption_of(analysis)));
}

void print_names(bool schedules) {
  for (const TopologyName& name : topology_names()) {
    if (name.is_schedule == schedules) fmt::print("  {:<24}{}\n", name.name, name.help);
  }
}

}  // namespace

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  write_whole(path, text);
}

void show(const Options& options) {
  const Subject subject = subject_of(options.names.front(), options);
  require(!options.matrix || subject.schedule.workers() <= most_printed_workers,
          ErrorKind::argument, "show --matrix: {} workers, at most {} are printed",
          subject.schedule.workers(), most_printed_workers);
  const Analysis analysis = analyze(subject.schedule, subject.rule, subject.lazy);
  write_files(options, subject, analysis);
  if (options.dot == "-" || options.svg == "-") return;
  if (options.json) {
    fmt::print("{}\n", json_of(analysis, subject, options).dump(2));
  } else {
    print(analysis, subject, options);
  }
}

void list() {
  fmt::print("Topologies (a name, or a path to a .toml or .mtx file):\n");
  print_names(false);
  fmt::print("\nSchedules (another topology each round):\n");
  print_names(true);
  fmt::print("\nWeights: metropolis, uniform_rows, uniform_columns, given, automatic, fastest\n");
}
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
  std::ranges::stable_sort(
      found, [](const Compared& a, const Compared& b) { return rounds_of(a) < rounds_of(b); });
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
