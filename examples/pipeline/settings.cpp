#include "pipeline/settings.hpp"

#include <algorithm>
#include <charconv>
#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <string_view>

using namespace fast;

namespace pipeline {
namespace {

template <class Number>
Number number(std::string_view option, std::string_view text, Number least) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= least,
          ErrorKind::argument, "{}: \"{}\"; a number of at least {} is required", option, text,
          least);
  return value;
}

std::vector<std::size_t> cuts_from(std::string_view text) {
  std::vector<std::size_t> cuts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    cuts.push_back(number<std::size_t>("--cut", text.substr(begin, end - begin), 1));
    begin = end + 1;
  }
  return cuts;
}

/// Whether it is one of the options without a value.
bool set_flag(Settings& to, std::string_view option) {
  if (option == "--whole") return to.whole = true;
  if (option == "--losses") return to.losses = true;
  return false;
}

void set(Settings& to, std::string_view option, const std::string& value) {
  if (option == "--model")
    to.model = value;
  else if (option == "--cut")
    to.cuts = cuts_from(value);
  else if (option == "--micro-batches")
    to.micro_batches = number<std::size_t>(option, value, 1);
  else if (option == "--batch")
    to.batch = number<std::size_t>(option, value, 1);
  else if (option == "--steps")
    to.steps = number(option, value, 1);
  else if (option == "--lr")
    to.learning_rate = number(option, value, 0.0);
  else if (option == "--algorithm")
    to.algorithm = value;
  else if (option == "--topology")
    to.topology = value;
  else if (option == "--staleness")
    to.staleness = number<std::int64_t>(option, value, 0);
  else if (option == "--seed")
    to.seed = number<std::uint64_t>(option, value, 0);
  else if (option == "--deadline")
    to.deadline_s = number(option, value, 0.1);
  else if (option == "--step-ms")
    to.step_ms = number(option, value, 0.0);
  else if (option == "--compare")
    to.compare = number(option, value, 1);
  else if (option == "--save")
    to.save = value;
  else
    fail(ErrorKind::argument, "{}: there is no such option; --help lists them", option);
}

}  // namespace

Settings settings_from(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    if (set_flag(settings, argv[i])) continue;
    require(i + 1 < argc, ErrorKind::argument, "{}: a value is required, or it is no option",
            argv[i]);
    set(settings, argv[i], argv[i + 1]);
    ++i;
  }
  require(settings.micro_batches <= settings.batch, ErrorKind::argument,
          "--micro-batches {}: more than the {} samples of a batch", settings.micro_batches,
          settings.batch);
  return settings;
}

nn::ModelSpec model_of(const Settings& settings) {
  nn::ModelSpec model = settings.model.ends_with(".toml")
                            ? nn::read_model(settings.model, {{1, 28, 28}, 10})
                            : nn::model_by_name(settings.model, 10, {1, 28, 28});
  require(nn::takes(model, {1, 28, 28}), ErrorKind::argument,
          "--model {}: it takes samples of shape {}, this example has images of 28x28 pixels",
          settings.model, nn::describe(model.input));
  return model;
}

WorkerOptions worker_options(const Settings& settings) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(settings.algorithm);
  options.staleness = settings.staleness;
  options.deadline = Seconds(settings.deadline_s);
  options.must_agree = "lr=" + std::to_string(settings.learning_rate);
  return options;
}

}  // namespace pipeline
