#include "fast_train/read_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <fast/exchange/spares.hpp>
#include <fast/fast.hpp>
#include <fast/topology/load.hpp>
#include <filesystem>
#include <variant>

#include "cli/command_line.hpp"
#include "cli/config_file.hpp"
#include "cli/program.hpp"
#include "core/message.hpp"
#include "core/whole_file.hpp"

namespace fast_train {

using namespace fast;

namespace {

std::string needs_of(const algorithm::RuleTraits& rule) {
  constexpr std::string_view mixing[] = {"–",
                                         "doubly stochastic",
                                         "symmetric",
                                         "symmetric, smallest eigenvalue > ",
                                         "column-stochastic",
                                         "pairs with weights ½",
                                         "a tree, each neighbor counts 1",
                                         "the complete graph, weights 1/N",
                                         "none: each neighbor counts 1"};
  if (rule.topology.scope != algorithm::Scope::neighbors) return "–";
  std::string text(mixing[static_cast<std::size_t>(rule.topology.mixing)]);
  if (rule.topology.mixing != algorithm::MixingRequirement::positive) return text;
  const double bound = rule.topology.eigenvalues_above;
  return text + (bound == -1.0 / 3 ? "-1/3" : fmt::format("{:.3g}", bound));
}

}  // namespace

std::string rules_markdown() {
  std::string text = "<!-- rules -->\n| name | rule | needs of W | source |\n|---|---|---|---|\n";
  for (const std::string_view name : algorithm::names()) {
    const auto rule = algorithm::by_name(name);
    const algorithm::RuleTraits& traits = rule.traits();
    text += fmt::format("| `{}` | {} | {} | {} |\n", name, tools::cell(traits.summary),
                        needs_of(traits), traits.source == "-" ? "–" : traits.source);
  }
  return text + "<!-- end -->\n";
}

using namespace fast;

nn::OptimizerSpec optimizer_of(const Options& o) {
  nn::OptimizerSpec spec = nn::optimizer_spec(o.optimizer);
  std::visit(
      [&](auto& options) {
        options.learning_rate = o.learning_rate.value_or(options.learning_rate);
        options.weight_decay = o.weight_decay.value_or(options.weight_decay);
      },
      spec);
  if (auto* sgd = std::get_if<nn::SgdOptions>(&spec)) {
    sgd->momentum = *momentum_of(o);
    sgd->nesterov = o.nesterov;
  } else {
    auto& adam = std::get<nn::AdamOptions>(spec);
    adam.beta1 = o.beta1.value_or(adam.beta1);
    adam.beta2 = o.beta2.value_or(adam.beta2);
  }
  return spec;
}

std::optional<double> momentum_of(const Options& o) {
  if (o.optimizer != "sgd") return std::nullopt;
  return o.momentum.value_or(brings_momentum(o) ? 0 : nn::SgdOptions{}.momentum);
}

double learning_rate_of(const Options& o) {
  return std::visit([](const auto& spec) { return spec.learning_rate; }, optimizer_of(o));
}

std::string optimizer_text(const Options& o) {
  const nn::OptimizerSpec spec = optimizer_of(o);
  std::string text = o.optimizer;
  if (const auto momentum = momentum_of(o); momentum && *momentum > 0) {
    text += fmt::format(", {} {}", o.nesterov ? "Nesterov momentum" : "momentum", *momentum);
  }
  const double decay = std::visit([](const auto& each) { return each.weight_decay; }, spec);
  if (decay > 0) text += fmt::format(", weight decay {}", decay);
  return text;
}

int prefetch_of(const Options& o) {
  const bool waits_for_data = o.device != "cpu" || is_stream(o);
  return o.prefetch.value_or(waits_for_data ? 2 : 0);
}

Options resolved(Options o) {
  const nn::OptimizerSpec spec = optimizer_of(o);
  std::visit(
      [&](const auto& optimizer) {
        o.learning_rate = optimizer.learning_rate;
        o.weight_decay = optimizer.weight_decay;
      },
      spec);
  if (const auto* sgd = std::get_if<nn::SgdOptions>(&spec)) {
    o.momentum = sgd->momentum;
  } else {
    o.beta1 = std::get<nn::AdamOptions>(spec).beta1;
    o.beta2 = std::get<nn::AdamOptions>(spec).beta2;
  }
  o.prefetch = prefetch_of(o);
  return o;
}

using namespace fast;

namespace {

/// Of a text that may be a path: letters, digits and a few signs.
std::string as_part_of_name(const std::string& text) {
  std::string name;
  for (const char c : std::filesystem::path(text).stem().string()) {
    const bool stays = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    name += stays ? c : '-';
  }
  return name;
}

std::string time_of_name(std::time_t now) {
  std::array<char, 32> text{};
  std::tm parts{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d-%H%M%S", localtime_r(&now, &parts));
  return text.data();
}

std::filesystem::path directory_of(const Options& o, int workers) {
  if (o.run_name != "auto") return parent_of_runs / o.run_name;
  return make_new_directory(parent_of_runs, automatic_name(o, workers, std::time(nullptr)));
}

}  // namespace

std::string automatic_name(const Options& o, int workers, std::time_t now) {
  const std::string topology = is_all_reduce(o) ? "allreduce" : as_part_of_name(o.topology);
  return fmt::format("{}-{}-{}-{}", time_of_name(now), as_part_of_name(o.model), topology, workers);
}

std::filesystem::path make_new_directory(const std::filesystem::path& parent,
                                         const std::string& name) {
  std::error_code problem;
  std::filesystem::create_directories(parent, problem);
  std::filesystem::path directory = parent / name;
  for (int number = 2; !problem; ++number) {
    if (std::filesystem::create_directory(directory, problem)) return directory;
    if (problem == std::errc::file_exists) problem.clear();
    directory = parent / fmt::format("{}-{}", name, number);
  }
  fail(ErrorKind::resource,
       "--run-name: the directory {} cannot be made: {}; name another one by --out",
       (parent / name).string(), problem.message());
}

void name_run(const Group& ranks, Options& o) {
  if (o.run_name.empty()) return;
  const int workers = o.exchange == "local" ? o.workers : ranks.size() - o.spares;
  const Deadline deadline(o.trainer.worker.deadline);
  std::string chosen;
  agree(ranks, deadline, "fast-train: naming the run", [&] {
    if (ranks.rank() == 0) chosen = directory_of(o, workers).string();
  });
  o.trainer.out = ranks.all_gather(chosen, deadline, "fast-train: naming the run")[0];
  if (ranks.rank() == 0) fast::say("run directory: {}\n", o.trainer.out->string());
}

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
  const bool has_out = std::ranges::any_of(
      given, [](const tools::GivenOption& each) { return each.row->name == "out"; });
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

/// Their 8x8 pixels are too few for the default model.
bool takes_digits_as_they_are(const Options& o) {
  std::error_code error;
  return o.data == "digits" && !o.load.resize && !std::filesystem::is_directory(o.data, error);
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
  o.batch_fits = table.at("batch_size").given_at.empty();
  if (takes_digits_as_they_are(o) && table.at("model").given_at.empty()) o.model = "mlp";
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
