#include "c/handles.hpp"

#include <fmt/ranges.h>

#include "core/message.hpp"
#include "core/registry.hpp"
#include "data/options/rows.hpp"
#include "sites/site_choice.hpp"
#include "train/options/rows.hpp"
#include "worker/worker_options.hpp"

namespace fast::c {
namespace {

using options::OptionTable;

constexpr std::string_view rule_option = "algorithm.", site_rule_option = "site_algorithm.";

/// What the rows of a worker's options write to.
struct Choices {
  RuleChoice rule;
  sites::SiteChoice site;
};

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

void add_worker_rows(OptionTable& table, WorkerOptions& worker, Choices& choices) {
  add_rows(table, choices.rule);
  add_rows(table, worker);
  sites::add_rows(table, choices.site);
  table.add("log", worker.log, log_to(), "1: messages of the library go to standard error");
}

/// 0 and 1, false and true are none and auto.
void let_numbers_say_progress(OptionTable& table) {
  options::OptionSpec& row = table.at("progress");
  row.read = [read = row.read](const std::vector<std::string>& texts) {
    const std::string& text = texts.back();
    const bool is_off = text == "0" || text == "false", is_on = text == "1" || text == "true";
    return read({is_off ? "none" : is_on ? "auto" : text});
  };
}

/// `rate`: stays empty where it is not set.
void add_train_rows(OptionTable& table, TrainSettings& settings, std::optional<double>& rate) {
  train::TrainerOptions& trainer = settings.trainer;
  add_rows(table, trainer);
  let_numbers_say_progress(table);
  train::add_batch_size(table, trainer.batch_size);
  train::add_learning_rate(table, rate, fmt::format("{}", trainer.learning_rate.base));
  data::add_rows(table, settings.load);
  data::add_limit(table, settings.load);
}

void set(OptionTable& table, const std::string& name, const std::string& value) {
  options::OptionSpec* row = table.find(name);
  require(row != nullptr, ErrorKind::argument, "option \"{}\" is unknown; choose {}{}", name,
          fmt::join(table.names(), ", "), did_you_mean(name, table.names()));
  table.set(*row, {value}, "option " + name);
}

/// "algorithm.KEY" and "site_algorithm.KEY" are options of the rules.
void apply(const fast_options* options, OptionTable& table, WorkerOptions& worker,
           Choices& choices) {
  static const std::map<std::string, std::string> none;
  for (const auto& [name, value] : options == nullptr ? none : options->values) {
    if (name.starts_with(rule_option))
      choices.rule.options.push_back(name.substr(rule_option.size()) + "=" + value);
    else if (name.starts_with(site_rule_option))
      choices.site.algorithm_options.push_back(name.substr(site_rule_option.size()) + "=" + value);
    else
      set(table, name, value);
  }
  worker.algorithm = choices.rule.rule();
  if (options != nullptr) worker.observer = all_of(options->observers);
}

}  // namespace

void log_to_stderr(LogLevel, std::string_view text) { say("{}\n", text); }

WorkerOptions worker_options(const fast_options* options) {
  WorkerOptions worker;
  Choices choices;
  OptionTable table;
  add_worker_rows(table, worker, choices);
  apply(options, table, worker, choices);
  table.check_needs();
  worker.site = choices.site.join();
  return worker;
}

TrainSettings train_settings(const fast_options* options) {
  TrainSettings settings;
  train::TrainerOptions& trainer = settings.trainer;
  trainer.learning_rate = train::usual_learning_rate();
  trainer.progress_style = train::ProgressStyle::none;
  std::optional<double> rate;
  Choices choices;
  OptionTable table;
  add_worker_rows(table, trainer.worker, choices);
  add_train_rows(table, settings, rate);
  apply(options, table, trainer.worker, choices);
  trainer.worker.site = choices.site.join();
  trainer.learning_rate.base = rate.value_or(trainer.learning_rate.base);
  trainer.progress = trainer.progress_style != train::ProgressStyle::none;
  data::resolve_size(settings.load);
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
