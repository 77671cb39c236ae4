#include "c/options.hpp"

#include <fmt/ranges.h>

#include <cstdio>

#include "core/closest.hpp"
#include "core/split_text.hpp"
#include "train/options/rows.hpp"
#include "worker/options/rows.hpp"

namespace fast::c {
namespace {

using options::OptionTable;

constexpr std::string_view rule_option = "algorithm.";

options::Value<LogSink> log_to() {
  options::Value<bool> flag = options::flag();
  return {.kind = flag.kind,
          .required = flag.required,
          .parse =
              [parse = flag.parse](std::string_view text, LogSink& into) {
                bool on = false;
                const options::Fit fit = parse(text, on);
                into = on ? LogSink(log_to_stderr) : LogSink();
                return fit;
              },
          .format = [](const LogSink& from) { return from ? "1" : "0"; }};
}

/// Separated by commas.
options::Value<std::vector<std::string>> list_of_names() {
  return {.kind = options::Kind::text,
          .required = "names, with commas between them",
          .parse =
              [](std::string_view text, std::vector<std::string>& into) {
                into.clear();
                for (const std::string_view name : split_text(text, ',')) into.emplace_back(name);
                return options::Fit::good;
              },
          .format = [](const std::vector<std::string>& all) -> std::optional<std::string> {
            return fmt::format("{}", fmt::join(all, ","));
          }};
}

void add_worker_rows(OptionTable& table, WorkerOptions& worker, RuleChoice& rule) {
  add_rows(table, rule);
  add_rows(table, worker);
  table.add("log", worker.log, log_to(), "1: messages of the library go to standard error");
}

void add_data_rows(OptionTable& table, data::LoadOptions& load) {
  using data::TargetKind;
  table.add("target", load.target, options::text(), "what is to be predicted");
  table.add("features", load.features, list_of_names(), "columns or an array that are the samples");
  table.add("target_type", load.targets,
            options::choice<TargetKind>({{"auto", TargetKind::automatic},
                                         {"classes", TargetKind::classes},
                                         {"numbers", TargetKind::numbers}}),
            "what the target is");
  table.add("test_data", load.test_data, options::text(), "the test part, in files of its own");
  table.add("test_share", load.test_share,
            options::optional(options::number<double>(options::fraction())),
            "share of a table that is the test part");
}

void add_train_rows(OptionTable& table, TrainSettings& settings) {
  train::TrainerOptions& trainer = settings.trainer;
  add_rows(table, trainer);
  table.add("batch_size", trainer.batch_size, options::number<std::size_t>(options::one_or_more()),
            "samples per step and worker");
  table.add("learning_rate", trainer.learning_rate.base,
            options::number<double>(options::positive()), "learning rate");
  table.add("samples", settings.load.limit, options::number<std::size_t>(options::any()),
            "train on the first so many samples only; 0: all");
  table.add("progress", trainer.progress, "print progress");
  add_data_rows(table, settings.load);
}

void set(OptionTable& table, const std::string& name, const std::string& value) {
  options::Row* row = table.find(name);
  require(row != nullptr, ErrorKind::argument, "option \"{}\" is unknown; choose {}{}", name,
          fmt::join(table.names(), ", "), did_you_mean(name, table.names()));
  table.set(*row, {value}, "option " + name);
}

/// "algorithm.KEY" is an option of the rule.
void apply(const fast_options* options, OptionTable& table, WorkerOptions& worker,
           RuleChoice& rule) {
  static const std::map<std::string, std::string> none;
  const auto& values = options == nullptr ? none : options->values;
  for (const auto& [name, value] : values) {
    if (!name.starts_with(rule_option)) set(table, name, value);
  }
  for (const auto& [name, value] : values) {
    if (!name.starts_with(rule_option)) continue;
    rule.options.push_back(name.substr(rule_option.size()) + "=" + value);
  }
  worker.algorithm = rule.rule();
  if (options != nullptr) worker.observer = all_of(options->observers);
}

}  // namespace

void log_to_stderr(LogLevel, std::string_view text) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

WorkerOptions worker_options(const fast_options* options) {
  WorkerOptions worker;
  RuleChoice rule;
  OptionTable table;
  add_worker_rows(table, worker, rule);
  apply(options, table, worker, rule);
  return worker;
}

TrainSettings train_settings(const fast_options* options) {
  TrainSettings settings;
  settings.trainer.progress = false;
  settings.trainer.learning_rate = {0.05, train::learning_rate_schedule("cosine"), 1};
  RuleChoice rule;
  OptionTable table;
  add_worker_rows(table, settings.trainer.worker, rule);
  add_train_rows(table, settings);
  apply(options, table, settings.trainer.worker, rule);
  return settings;
}

}  // namespace fast::c

using namespace fast;

extern "C" {

fast_status fast_options_create(fast_options** options) {
  return c::guarded([&] {
    c::require_given(options, "options");
    *options = new fast_options{};
  });
}

fast_status fast_options_set(fast_options* options, const char* name, const char* value) {
  return c::guarded([&] {
    c::require_given(options, "options");
    c::require_given(name, "an option's name");
    c::require_given(value, "an option's value");
    options->values[name] = value;
  });
}

void fast_options_free(fast_options* options) { delete options; }

}  // extern "C"
