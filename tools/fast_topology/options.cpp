#include "fast_topology/options.hpp"

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

}  // namespace fast_topology
