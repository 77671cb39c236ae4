#include "fast_train/read_options.hpp"

#include <algorithm>
#include <cstdio>
#include <fast/core/message.hpp>
#include <fast/core/version.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/fast.hpp>
#include <fast/topology/load.hpp>

#include "cli/command_line.hpp"
#include "cli/config_file.hpp"
#include "core/whole_file.hpp"
#include "fast_train/resolve.hpp"
#include "fast_train/rule_table.hpp"
#include "fast_train/run_name.hpp"

namespace fast_train {

using namespace fast;
using options::OptionTable;

namespace {

constexpr char program[] = "fast-train";
constexpr char purpose[] =
    "Trains a model on several workers. Each worker has a replica, trains on its own shard and "
    "averages weights with its neighbors in a topology only.";

/// With the names of the topologies, for which a manual page has another program.
std::string help() {
  tools::Program described = command_line();
  described.notes.clear();
  std::string text = tools::help_text(described, program) + "\nTopologies:\n";
  for (const auto& topology : topology_names()) {
    text += fmt::format("  {:<26}{}\n", topology.name, tools::wrapped(topology.help, 28));
  }
  return text;
}

std::string markdown() { return tools::options_markdown(command_line()) + rules_markdown(); }

bool asks_for_text(const Requests& requests) {
  return requests.help || requests.help_markdown || requests.version;
}

void check_optimizer(const Options& o) {
  const bool sgd = o.optimizer == "sgd";
  require(!brings_momentum(o) || (sgd && *momentum_of(o) == 0), ErrorKind::argument,
          "--algorithm {}: it brings momentum itself, on steps of plain SGD; leave --momentum out "
          "and take --optimizer sgd (its own is --algorithm-option momentum=0.9)",
          o.rule.name);
}

/// A directory of a configuration file gives way to a name.
void check_run_name(const Options& o, const std::vector<tools::GivenOption>& given) {
  const bool has_out = std::any_of(given.begin(), given.end(), [](const tools::GivenOption& each) {
    return each.row->name == "out";
  });
  require(!has_out, ErrorKind::argument,
          "--run-name {} and --out: both name the run's directory; leave one out",
          printable(o.run_name));
  require(o.run_name.find('/') == std::string::npos && !o.run_name.starts_with('.'),
          ErrorKind::argument,
          "--run-name: \"{}\"; a name without a slash, or auto, is required (--out takes paths)",
          printable(o.run_name));
}

void check_ranks(const Options& o, const Group& ranks) {
  require(o.exchange != "local" || ranks.size() == 1, ErrorKind::argument,
          "--exchange local: workers are threads of one process, mpiexec started {}; leave mpiexec "
          "out or choose --exchange hybrid",
          ranks.size());
  require(ranks.name() != "hybrid" || o.exchange != "shared", ErrorKind::argument,
          "--exchange shared: ranks are on several hosts; start all on one, or take --exchange "
          "hybrid");
}

void write_config(const Options& o) {
  const std::string& path = o.requests.write_config;
  const std::string text = config_of(o);
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  write_whole(path, text);
  fmt::print("{} written; start the run with: fast-train --config {}\n", printable(path),
             tools::shell_word(path));
}

/// What is done in place of training.
void serve(const Options& o) {
  if (o.requests.help) return void(std::fputs(help().c_str(), stdout));
  if (o.requests.help_markdown) return void(std::fputs(markdown().c_str(), stdout));
  if (o.requests.version) return fmt::print("{} {}\n", program, version());
  write_config(o);
}

}  // namespace

tools::Program command_line() {
  Options o;
  OptionTable table;
  add_rows(table, o);
  tools::Program described = tools::program_of(table, groups(), program, purpose);
  described.usage = {
      "mpiexec -n 4 fast-train [OPTIONS]",
      "fast-train --exchange local [OPTIONS]     workers are threads of one process"};
  described.example = "mpiexec -n 4 fast-train --epochs 5";
  described.notes =
      "Topologies are listed by fast-train --help and shown by fast-topology(1). Rules and their "
      "options are listed by fast-train --help-markdown.\n\n"
      "Workers are started by fastrun(1) or by mpiexec.";
  return described;
}

void read_into(Options& o, int argc, const char* const* argv) {
  OptionTable table;
  add_rows(table, o);
  const auto given = tools::parse_command_line(table, program, argc, argv);
  for (const tools::GivenOption& option : given) {
    if (option.row->on_command_line) tools::set(table, {option});
  }
  if (asks_for_text(o.requests)) return;
  if (!o.requests.config.empty()) tools::read_config(table, o.requests.config);
  tools::set(table, given);
  if (!o.run_name.empty()) {
    check_run_name(o, given);
    o.trainer.out = parent_of_runs / o.run_name;  // until name_run()
  }
  table.check_needs();
  check_optimizer(o);
}

std::string config_of(const Options& o) {
  Options plain = o, run = resolved(o);
  OptionTable table, stands;
  add_rows(table, plain);
  add_rows(stands, run);
  return tools::config_text(table, stands, groups(), program);
}

std::optional<Options> read_options(const Group& ranks, int argc, char** argv) {
  Options o;
  o.spares = spares_of_launcher();
  bool trains = false;
  agree(ranks, Deadline(Seconds(60)), "fast-train: reading options", [&] {
    read_into(o, argc, argv);
    trains = !asks_for_text(o.requests) && o.requests.write_config.empty();
    if (!asks_for_text(o.requests)) check_ranks(o, ranks);
  });
  // After all have read the file that may be written to.
  agree(ranks, Deadline(Seconds(60)), "fast-train: writing options", [&] {
    if (!trains && ranks.rank() == 0) serve(o);
  });
  return trains ? std::optional<Options>(o) : std::nullopt;
}

}  // namespace fast_train
