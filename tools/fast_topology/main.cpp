// fast-topology: which topologies there are, what they promise, and what they look like.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology_tools/analysis.hpp>
#include <fast/topology_tools/picture.hpp>
#include <fast/topology_tools/save.hpp>
#include <fast/worker/requirements.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/program.hpp"
#include "fast_topology_plan.hpp"

using namespace fast;
using nlohmann::ordered_json;

namespace {

constexpr int usual_workers = 16;
constexpr int most_checked_workers = 100'000;
constexpr Seconds start_limit{60};

const std::vector<std::string> weight_words{"metropolis", "uniform_rows", "uniform_columns",
                                            "given",      "automatic",    "fastest"};

struct Options {
  std::vector<std::string> names;
  int workers = 0;
  double parameters = 0;
  double momentum = 0.9;
  std::string weights = "automatic";
  bool lazy = false, matrix = false, json = false;
  std::string dot, svg, save;
  int rounds = 60;
  std::string algorithm;
};

struct Subject {
  Schedule schedule;
  WeightRule rule = WeightRule::automatic;
  bool lazy = false;
};

Subject subject_of(const std::string& name, const Options& options) {
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

std::string shown(const std::optional<Figure>& figure, const char* bound, int digits = 6) {
  if (!figure) return "-";
  return fmt::format("{}{:.{}g}", figure->is_bound ? std::string(bound) + " " : "", figure->value,
                     digits);
}

ordered_json json_of(const std::optional<Figure>& figure) {
  return figure ? ordered_json(figure->value) : ordered_json();
}

std::vector<double> matrix_of(const Subject& subject, std::int64_t round) {
  return mixing_matrix(subject.schedule.at(round), subject.rule, subject.lazy);
}

// What a user should hear before a choice is made.
std::vector<std::string> warnings_of(const Subject& subject, const Analysis& analysis) {
  std::vector<std::string> warnings = analysis.check.findings;
  const int n = analysis.workers;
  if (subject.schedule.name() == "one_peer_exponential" && (n & (n - 1)) != 0 && n <= 400) {
    double worst = 0;
    for (int column = 0; column < n; ++column) {
      std::vector<double> x(static_cast<std::size_t>(n));
      x[static_cast<std::size_t>(column)] = 1;
      for (std::int64_t t = 0; t < subject.schedule.period(); ++t) {
        std::vector<double> y;
        for (int i = 0; i < n; ++i) {
          const MixingRow row = mixing_row(subject.schedule.at(t), i, subject.rule, subject.lazy);
          double sum = row.self * x[static_cast<std::size_t>(i)];
          for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
            sum += row.weights[k] * x[static_cast<std::size_t>(row.neighbors[k])];
          }
          y.push_back(sum);
        }
        x = std::move(y);
      }
      for (const double value : x) worst = std::max(worst, std::abs(value - 1.0 / n));
    }
    warnings.push_back(
        fmt::format("{} workers are no power of two: one period is not the exact average, the "
                    "largest weight is "
                    "off by {:.4f}; base2 is exact for any number of workers",
                    n, worst));
  }
  if (analysis.gap && analysis.gap->value < 1e-12) {
    warnings.push_back("the gap is 0: workers do not come to agree with these weights");
  }
  return warnings;
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
                       {"rounds_to_1e-3", json_of(a.rounds_to_consensus)}};
  ordered_json bounds = ordered_json::array();
  const std::pair<const char*, const std::optional<Figure>*> figures[] = {
      {"gap", &a.gap},
      {"smallest_eigenvalue", &a.smallest_eigenvalue},
      {"diameter", &a.diameter},
      {"rounds_to_1e-3", &a.rounds_to_consensus}};
  for (const auto& [name, figure] : figures) {
    if (*figure && (*figure)->is_bound) bounds.push_back(name);
  }
  json["bounds"] = bounds;
  if (a.smallest_eigenvalue) {
    json["awc_stability_factor"] =
        awc_stability_factor(a.smallest_eigenvalue->value, options.momentum);
  }
  if (options.parameters > 0) {
    json["bytes_read_per_round"] = 4 * options.parameters * a.average_edges;
  }
  json["warnings"] = warnings_of(subject, a);
  if (options.matrix) {
    const std::int64_t rounds = std::max<std::int64_t>(1, a.period);
    for (std::int64_t t = 0; t < rounds; ++t) json["matrix"].push_back(matrix_of(subject, t));
  }
  return json;
}

void print(const Analysis& a, const Subject& subject, const Options& options) {
  const auto line = [](const char* label, const std::string& value) {
    fmt::print("{:<24}{}\n", label, value);
  };
  line("topology", a.name);
  line("workers", std::to_string(a.workers));
  line("rounds before repeating", a.period == 0 ? "never repeats" : std::to_string(a.period));
  line("neighbors read a round", a.least_degree == a.most_degree
                                     ? std::to_string(a.most_degree)
                                     : fmt::format("{} to {}", a.least_degree, a.most_degree));
  line("directed", a.directed ? "yes" : "no");
  line("doubly stochastic", a.check.doubly_stochastic()              ? "yes"
                            : a.check.doubly_stochastic_on_average() ? "on average over the rounds"
                                                                     : "no");
  line("gap", shown(a.gap, "at most"));
  line("smallest eigenvalue", shown(a.smallest_eigenvalue, "at most"));
  line("diameter", shown(a.diameter, "at least"));
  line("rounds to 1e-3", shown(a.rounds_to_consensus, a.period == 0 ? "about" : "at least"));
  if (a.smallest_eigenvalue) {
    line("awc is stable for",
         fmt::format("learning rate x curvature < {:.3g} (momentum {})",
                     awc_stability_factor(a.smallest_eigenvalue->value, options.momentum),
                     options.momentum));
  }
  if (options.parameters > 0) {
    line("bytes read a round",
         fmt::format("{:.4g} MB a worker ({:.4g} f32 parameters)",
                     4e-6 * options.parameters * a.average_edges, options.parameters));
  }
  for (const std::string& warning : warnings_of(subject, a)) fmt::print("note: {}\n", warning);
  if (!options.matrix) return;
  for (std::int64_t t = 0; t < std::max<std::int64_t>(1, a.period); ++t) {
    fmt::print("\nround {}\n", t);
    const std::vector<double> matrix = matrix_of(subject, t);
    for (std::size_t k = 0; k < matrix.size(); ++k) {
      const bool last = (k + 1) % static_cast<std::size_t>(a.workers) == 0;
      fmt::print("{:7.4f}{}", matrix[k], last ? "\n" : " ");
    }
  }
}

void write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.flush();
  require(file.good(), ErrorKind::data, "cannot write {}; name another file", path);
}

std::string caption_of(const Analysis& a) {
  std::string text = fmt::format("{} workers, {} neighbor{} a round", a.workers,
                                 a.least_degree == a.most_degree
                                     ? std::to_string(a.most_degree)
                                     : fmt::format("{} to {}", a.least_degree, a.most_degree),
                                 a.most_degree == 1 ? "" : "s");
  if (a.gap) text += fmt::format(", gap {}", shown(a.gap, "at most", 3));
  return text;
}

void show(const Options& options) {
  const Subject subject = subject_of(options.names.front(), options);
  require(!options.matrix || subject.schedule.workers() <= 1000, ErrorKind::argument,
          "show --matrix: {} workers, at most 1000 are printed", subject.schedule.workers());
  const Analysis analysis = analyze(subject.schedule, subject.rule, subject.lazy);
  if (!options.save.empty()) {
    write(options.save, topology_text(subject.schedule, options.save, subject.rule, subject.lazy));
  }
  if (!options.dot.empty()) write(options.dot, dot_picture(subject.schedule));
  if (!options.svg.empty()) write(options.svg, svg_picture(subject.schedule, caption_of(analysis)));
  if (options.dot == "-" || options.svg == "-") return;
  if (options.json) {
    fmt::print("{}\n", json_of(analysis, subject, options).dump(2));
  } else {
    print(analysis, subject, options);
  }
}

void compare(const Options& options) {
  std::vector<std::pair<Analysis, Subject>> found;
  std::vector<Curve> curves;
  for (const std::string& name : options.names) {
    try {
      Subject subject = subject_of(name, options);
      found.emplace_back(analyze(subject.schedule, subject.rule, subject.lazy), subject);
    } catch (const Error& error) {
      fmt::print(stderr, "left out: {}\n", error.what());
    }
  }
  require(!found.empty(), ErrorKind::topology, "compare: none of the topologies can be made");
  const auto rounds = [](const Analysis& a) {
    return a.rounds_to_consensus ? a.rounds_to_consensus->value : 1e300;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto& a, const auto& b) { return rounds(a.first) < rounds(b.first); });
  ordered_json all = ordered_json::array();
  if (!options.json) {
    fmt::print("{:<28}{:>10}{:>12}{:>10}{:>10}{:>14}\n", "topology", "neighbors", "gap", "diameter",
               "rounds", "reads to 1e-3");
  }
  for (const auto& [a, subject] : found) {
    if (options.json) {
      all.push_back(json_of(a, subject, options));
    } else {
      const double reads = rounds(a) * a.average_edges;
      fmt::print("{:<28}{:>10.3g}{:>12}{:>10}{:>10}{:>14}\n", a.name, a.average_edges,
                 a.gap ? fmt::format("{:.5f}", a.gap->value) : "-", shown(a.diameter, ">="),
                 shown(a.rounds_to_consensus, a.period == 0 ? "~" : ">="),
                 a.rounds_to_consensus ? fmt::format("{:.4g}", reads) : "-");
    }
    if (!options.svg.empty()) {
      curves.push_back(
          {a.name, consensus_curve(subject.schedule, options.rounds, subject.rule, subject.lazy)});
    }
  }
  if (options.json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print(
        "\nrounds: until disagreement has shrunk to 1/1000, worst start (~: measured). reads: "
        "models that a worker reads until then.\n");
  }
  if (!options.svg.empty()) {
    write(options.svg,
          svg_curves(fmt::format("Consensus, {} workers", found[0].first.workers), curves));
  }
}

// Throws Error(topology) when the algorithm would not run with these weights as they are.
void check_fits(const Schedule& schedule, const std::string& name, const Options& options) {
  const algorithm::Declaration rule = algorithm::by_name(name).declaration();
  const WeightRule weights = weight_rule_for(rule, schedule, weight_rule_by_name(options.weights));
  require_mixing(schedule, weights, options.lazy, requirements(rule), name);
}

// True for what a run can learn with: read without an error, and connected over its rounds.
bool check_file(const std::string& path, const Options& options) try {
  const TopologyRule rule = load_topology(path);
  int workers = options.workers != 0 ? options.workers : rule.natural_workers();
  if (workers == 0) workers = usual_workers;
  require(workers <= most_checked_workers, ErrorKind::topology,
          "{}: key \"workers\" or \"sides\": {} workers, at most {} are checked", path, workers,
          most_checked_workers);
  const Schedule schedule = rule.make(workers);
  const double reads =
      1.0 * schedule.at(0).in_degree(0) * workers * std::max<double>(1, schedule.period());
  require(reads < 1e8, ErrorKind::topology,
          "{}: key \"workers\": {} workers read about {:.1g} values, 1e8 can be checked; give "
          "--workers",
          path, workers, reads);
  const MixingCheck found =
      check_mixing(schedule, weight_rule_by_name(options.weights), options.lazy);
  if (!options.algorithm.empty()) check_fits(schedule, options.algorithm, options);
  fmt::print("{}: {} with {} workers: {}\n", printable(path), printable(schedule.name()), workers,
             found.connected ? "connected" : "not connected");
  for (const std::string& finding : found.findings) fmt::print("  note: {}\n", finding);
  return found.connected;
} catch (const Error& error) {
  if (error.kind() == ErrorKind::argument) throw;
  fmt::print("{}: refused: {}\n", printable(path), error.what());
  return false;
}

void list() {
  fmt::print("Topologies (a name, or a path to a .toml or .mtx file):\n");
  for (const bool schedules : {false, true}) {
    if (schedules) fmt::print("\nSchedules (another topology each round):\n");
    for (const TopologyName& name : topology_names()) {
      if (name.is_schedule == schedules) fmt::print("  {:<24}{}\n", name.name, name.help);
    }
  }
  fmt::print("\nWeights: metropolis, uniform_rows, uniform_columns, given, automatic, fastest\n");
}

void add_options(CLI::App& command, Options& options) {
  command.add_option("-n,--workers", options.workers, "Number of workers")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  tools::offer(
      command.add_option("--weights", options.weights, "Rule of the mixing weights, or fastest"),
      weight_words);
  command.add_flag("--lazy", options.lazy, "Lazy weights, (I + W) / 2");
  command.add_option("--parameters", options.parameters, "Parameters of the model, f32");
  command.add_option("--momentum", options.momentum, "Momentum, for the stability of awc");
  command.add_flag("--json", options.json, "Print JSON");
  tools::offer(command.add_option("--svg", options.svg, "Write a picture (- for standard output)"),
               {"<file>"});
}

// Rank 0 parses first, so that what is wrong is said once.
std::optional<int> parse(CLI::App& app, int argc, char** argv, const mpi::Communicator* world) {
  if (world == nullptr) return tools::parse(app, argc, argv);
  std::optional<int> status;
  if (world->rank() == 0) status = tools::parse(app, argc, argv);
  const auto all = world->all_gather(status ? std::to_string(*status) : "", Deadline(start_limit),
                                     "reading options");
  if (!all.front().empty()) return std::stoi(all.front());
  return world->rank() == 0 ? std::nullopt : tools::parse(app, argc, argv);
}

// `world`: the ranks that measure a cluster.
int run(int argc, char** argv, const mpi::Communicator* world = nullptr) {
  CLI::App app("Which topologies there are, what they promise and what they look like.",
               "fast-topology");
  app.require_subcommand(1);
  Options options;
  CLI::App* list_command = app.add_subcommand("list", "All names");
  CLI::App* show_command = app.add_subcommand("show", "Figures and pictures of one topology");
  tools::offer(
      show_command->add_option("topology", options.names, "Name or file")->required()->expected(1),
      tools::topology_words());
  add_options(*show_command, options);
  show_command->add_flag("--matrix", options.matrix, "Print the mixing matrix");
  tools::offer(show_command->add_option("--dot", options.dot,
                                        "Write a graphviz file (- for standard output)"),
               {"<file>"});
  tools::offer(show_command->add_option("--save", options.save,
                                        "Write topology and weights to a .toml or .mtx file"),
               {"<file>"});
  CLI::App* compare_command = app.add_subcommand("compare", "A table, best first");
  tools::offer(
      compare_command->add_option("topologies", options.names, "Names or files")->required(),
      tools::topology_words());
  add_options(*compare_command, options);
  compare_command->add_option("--rounds", options.rounds, "Rounds of the curves")
      ->check(CLI::Range(1, 100'000));
  CLI::App* check_command = app.add_subcommand("check", "Read files and say what is wrong");
  tools::offer(check_command->add_option("files", options.names, "Files")->required(), {"<file>"});
  check_command->add_option("-n,--workers", options.workers, "Number of workers")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  tools::offer(
      check_command->add_option("--weights", options.weights, "Rule of the mixing weights"),
      weight_words);
  check_command->add_flag("--lazy", options.lazy, "Lazy weights, (I + W) / 2");
  tools::offer(
      check_command->add_option("--algorithm", options.algorithm,
                                "Refuse what this algorithm of fast-train cannot run with"),
      tools::rule_words());
  const tools::PlanCommand plan_command(app);
  if (const auto status = parse(app, argc, argv, world)) return *status;

  if (plan_command.parsed()) plan_command.run(world);
  if (list_command->parsed()) list();
  if (show_command->parsed()) show(options);
  if (compare_command->parsed()) compare(options);
  if (!check_command->parsed()) return 0;
  bool sound = true;
  for (const std::string& file : options.names) sound = check_file(file, options) && sound;
  return sound ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto measures = [](const char* argument) {
    const std::string_view text(argument);
    return text == "--measure" || text.starts_with("--measure=");
  };
  if (!std::any_of(argv + 1, argv + argc, measures)) return run(argc, argv);
  return mpi::run(argc, argv,
                  [&](const mpi::Communicator& world) { return run(argc, argv, &world); });
} catch (const std::exception& error) {
  fmt::print(stderr, "fast-topology: {}\n", message_of(error));
  return 1;
}
