// Training speed of fast::nn, on one thread unless told otherwise: forward, backward and SGD,
// samples a second.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <fast/core/random.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/network.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace fast;

namespace {

struct Options {
  std::vector<std::int64_t> batches{64};
  int repetitions = 15;
  double seconds = 0.2;  // of one repetition
  std::string json;
  bool cpu_time = false;
  int threads = 1;
  std::vector<std::string> modes{"train", "evaluate"};
  std::vector<std::string> models{"lenet5", "mlp"};
};

struct Figure {
  std::string model, mode;
  std::size_t parameters;
  std::int64_t batch;
  double median, low, high;  // samples a second
};

/// Random images with random labels.
struct Samples {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  nn::Shape shape;

  Samples(std::int64_t count, nn::Shape image) : shape(std::move(image)) {
    Rng rng(7);
    for (std::int64_t i = 0; i < count * shape[0] * shape[1] * shape[2]; ++i)
      inputs.push_back(static_cast<float>(rng.uniform()));
    for (std::int64_t i = 0; i < count; ++i)
      labels.push_back(static_cast<std::int32_t>(rng.below(10)));
  }
  Batch batch() const { return {inputs, labels, shape}; }
};

/// Seconds on the clock of the wall or of this thread.
double now(bool cpu_time) {
  timespec time{};
  clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Calls per second of `step`, over at least options.seconds.
template <class Step>
double rate(const Options& options, Step step) {
  const double begin = now(options.cpu_time);
  std::int64_t calls = 0;
  double elapsed = 0;
  do {
    step();
    ++calls;
    elapsed = now(options.cpu_time) - begin;
  } while (elapsed < options.seconds);
  return static_cast<double>(calls) / elapsed;
}

template <class Step>
Figure measure(const Options& options, const nn::ModelSpec& spec, std::string mode,
               std::int64_t batch, Step step) {
  rate(options, step);
  std::vector<double> rates;
  for (int i = 0; i < options.repetitions; ++i)
    rates.push_back(static_cast<double>(batch) * rate(options, step));
  std::sort(rates.begin(), rates.end());
  return {spec.name,     std::move(mode), nn::parameter_count(spec), batch, rates[rates.size() / 2],
          rates.front(), rates.back()};
}

void print(const Figure& f) {
  fmt::print("{:<16} {:<9} {:>10} {:>6} {:>12.0f} {:>12.0f} {:>12.0f}\n", f.model, f.mode,
             f.parameters, f.batch, f.median, f.low, f.high);
}

nlohmann::json json_of(const Figure& f) {
  return {{"model", f.model},
          {"mode", f.mode},
          {"parameters", f.parameters},
          {"batch", f.batch},
          {"median_samples_per_second", f.median},
          {"low_samples_per_second", f.low},
          {"high_samples_per_second", f.high}};
}

nn::ModelSpec model(const std::string& name) {
  if (name == "resnet20") return nn::resnet20();
  return name == "mlp" ? nn::mlp({784, 256, 10}) : nn::lenet5();
}

std::vector<Figure> run(const Options& options) {
  std::vector<Figure> figures;
  for (const std::string& name : options.models)
    for (const std::int64_t count : options.batches)
      for (const std::string& mode : options.modes) {
        const nn::ModelSpec spec = model(name);
        const Samples samples(count, spec.input.size() == 3 ? spec.input : nn::Shape{1, 28, 28});
        const auto backend = nn::make_backend<float>(
            spec, 1, {.optimizer = nn::SgdOptions{0.01, 0.9, 0}, .threads = options.threads});
        const Batch batch = samples.batch();
        const auto step = [&] {
          if (mode == "train")
            backend->train(batch);
          else
            backend->evaluate(batch);
        };
        figures.push_back(measure(options, spec, mode, count, step));
        print(figures.back());
      }
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Training speed of fast::nn, on one thread unless told otherwise: forward, backward and SGD"};
  app.add_option("--batch", options.batches, "batch sizes")->check(CLI::PositiveNumber);
  app.add_option("--repetitions", options.repetitions, "repetitions, of which the median is given")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "length of a repetition")
      ->check(CLI::PositiveNumber);
  app.add_option("--model", options.models, "models")
      ->check(CLI::IsMember({"lenet5", "mlp", "resnet20"}));
  app.add_option("--mode", options.modes, "what is timed")
      ->check(CLI::IsMember({"train", "evaluate"}));
  app.add_option("--threads", options.threads, "threads across the batch")
      ->check(CLI::PositiveNumber);
  app.add_flag("--cpu-time", options.cpu_time,
               "time on the processor instead of the wall's: for a machine with other work");
  app.add_option("--json", options.json, "write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("{:<16} {:<9} {:>10} {:>6} {:>12} {:>12} {:>12}\n", "model", "mode", "parameters",
               "batch", "samples/s", "low", "high");
    nlohmann::json list = nlohmann::json::array();
    for (const Figure& figure : run(options)) list.push_back(json_of(figure));
    if (!options.json.empty() && !(std::ofstream(options.json) << list.dump(2) << '\n')) {
      fmt::print(stderr, "bench_nn: cannot write {}\n", options.json);
      return 1;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_nn: {}\n", error.what());
    return 1;
  }
}
