#include "c/options.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <functional>

namespace fast::c {
namespace {

using Setter = std::function<void(const std::string& name, const std::string& value)>;
using Setters = std::map<std::string, Setter>;

template <class Number>
Number number(const std::string& name, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), ErrorKind::argument,
          "option {}: \"{}\"; a number is required", name, text);
  return value;
}

template <class Number>
Setter set(Number& target) {
  return [&target](const std::string& name, const std::string& value) {
    target = number<Number>(name, value);
  };
}
Setter set(Seconds& target) {
  return [&target](const std::string& name, const std::string& value) {
    target = Seconds(number<double>(name, value));
  };
}
Setter set(bool& target) {
  return [&target](const std::string& name, const std::string& value) {
    require(value == "0" || value == "1", ErrorKind::argument, "option {}: \"{}\"; choose 0 or 1",
            name, value);
    target = value == "1";
  };
}

Initial initial_by_name(const std::string& value) {
  if (value == "broadcast") return Initial::broadcast;
  if (value == "as_is") return Initial::as_is;
  fail(ErrorKind::argument, "option initial: \"{}\"; choose broadcast or as_is", value);
}

void log_to_stderr(LogLevel, std::string_view text) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

Setters worker_setters(WorkerOptions& worker) {
  return {{"weights", [&](auto&, auto& value) { worker.weights = weight_rule_by_name(value); }},
          {"lazy_weights", set(worker.lazy_weights)},
          {"staleness",
           [&](auto& name, auto& value) {
             worker.staleness =
                 value == "inf" ? unbounded_staleness : number<std::int64_t>(name, value);
           }},
          {"codec", [&](auto&, auto& value) { worker.codec = codec::by_name(value); }},
          {"mix_every", set(worker.mix_every)},
          {"initial", [&](auto&, auto& value) { worker.initial = initial_by_name(value); }},
          {"deadline", set(worker.deadline)},
          {"suspect_after", set(worker.suspect_after)},
          {"must_agree", [&](auto&, auto& value) { worker.must_agree = value; }},
          {"log", [&](auto&, auto& value) {
             if (value != "0") worker.log = log_to_stderr;
           }}};
}

Setters train_setters(TrainSettings& settings) {
  train::TrainerOptions& trainer = settings.trainer;
  return {{"epochs", set(trainer.epochs)},
          {"batch_size", set(trainer.batch_size)},
          {"learning_rate", set(trainer.learning_rate.base)},
          {"schedule",
           [&](auto&, auto& value) {
             trainer.learning_rate.schedule = train::learning_rate_schedule(value);
           }},
          {"warmup", set(trainer.learning_rate.warmup_epochs)},
          {"seed", set(trainer.seed)},
          {"samples", set(settings.samples)},
          {"shards", [&](auto&, auto& value) { trainer.shards = data::sharding_from(value); }},
          {"closing_rounds",
           [&](auto& name, auto& value) {
             if (value != "auto") trainer.closing_rounds = number<std::int64_t>(name, value);
           }},
          {"progress", set(trainer.progress)},
          {"out", [&](auto&, auto& value) { trainer.out = value; }}};
}

void apply(const fast_options* options, const Setters& setters, WorkerOptions& worker) {
  std::string algorithm = "awc";
  algorithm::Parameters parameters;
  const std::string prefix = "algorithm.";
  if (options != nullptr)
    for (const auto& [name, value] : options->values) {
      if (name == "algorithm") {
        algorithm = value;
      } else if (name.starts_with(prefix)) {
        parameters.emplace(name.substr(prefix.size()), value);
      } else if (const auto found = setters.find(name); found != setters.end()) {
        found->second(name, value);
      } else {
        std::vector<std::string> names{"algorithm", "algorithm.KEY"};
        for (const auto& setter : setters) names.push_back(setter.first);
        fail(ErrorKind::argument, "option \"{}\" is unknown; choose {}", name,
             fmt::join(names, ", "));
      }
    }
  worker.algorithm = algorithm::by_name(algorithm, parameters);
}

}  // namespace

WorkerOptions worker_options(const fast_options* options) {
  WorkerOptions worker;
  apply(options, worker_setters(worker), worker);
  return worker;
}

TrainSettings train_settings(const fast_options* options) {
  TrainSettings settings;
  settings.trainer.progress = false;
  settings.trainer.learning_rate = {0.05, train::learning_rate_schedule("cosine"), 1};
  Setters setters = worker_setters(settings.trainer.worker);
  setters.merge(train_setters(settings));
  apply(options, setters, settings.trainer.worker);
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
