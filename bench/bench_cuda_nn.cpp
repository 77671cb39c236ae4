// Training steps of nn's models on a card, loss read back included, the batch there already as one
// prefetched is: what bench/peers/*_torch.py are the counterparts of, whose batch is there, too.
#include <fast/core/deadline.hpp>
#include <fast/core/random.hpp>
#include <fast/cuda/device.hpp>
#include <fast/nn/cuda/network.hpp>
#include <fast/nn/cuda/optimizer.hpp>
#include <fast/nn/network.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"

using namespace fast;

namespace {

/// SGD with momentum on one random batch, from nn's initial weights.
class Training {
 public:
  Training(const nn::ModelSpec& spec, std::size_t count, std::int32_t classes,
           cuda::Precision precision, bool tuned)
      : stage_(std::make_shared<cuda::BatchStage>()),
        network_(spec, {.precision = precision,
                        .autotune = tuned,
                        .graph = tuned,
                        .stage = stage_,
                        .log = [this](LogLevel, std::string_view text) { said_ = text; }}),
        optimizer_(nn::SgdOptions{.learning_rate = 0.001}, network_.parameters().size()),
        shape_(spec.input),
        labels_(count) {
    nn::Network<float> initial(spec, 1);
    cuda::copy(network_.parameters().data(), initial.parameters().data(),
               initial.parameters().size_bytes(), network_.stream());
    network_.stream().synchronize(Deadline(Seconds(60)));
    const auto size =
        std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
    Rng rng(1);
    size_ = count * static_cast<std::size_t>(size);
    inputs_ = stage_->allocate(size_);
    for (float& value : std::span(inputs_.get(), size_)) value = static_cast<float>(rng.normal());
    for (std::size_t i = 0; i < count; ++i) labels_[i] = static_cast<std::int32_t>(i) % classes;
    stage_->filled(batch());
  }

  void step() { loss_ = network_.train(batch(), optimizer_); }
  double loss() const { return loss_; }
  const std::string& said() const { return said_; }

 private:
  Batch batch() const { return {{inputs_.get(), size_}, labels_, shape_}; }

  std::shared_ptr<cuda::BatchStage> stage_;
  std::string said_;
  cuda::Network network_;
  cuda::Optimizer<float> optimizer_;
  nn::Shape shape_;
  std::shared_ptr<float> inputs_;
  std::size_t size_ = 0;
  std::vector<std::int32_t> labels_;
  double loss_ = 0;
};

/// False when a run failed, which keeps none of the others from running.
bool run(bench::Report& report, const nn::ModelSpec& spec, std::size_t count, std::int32_t classes,
         const std::vector<std::string>& precisions) {
  using cuda::Precision;
  bool passed = true;
  // Tuning in f32 takes longest.
  for (const auto& [precision, tuned] : {std::pair(Precision::f32, false),
                                         {Precision::tf32, false},
                                         {Precision::bf16, false},
                                         {Precision::bf16, true},
                                         {Precision::tf32, true},
                                         {Precision::f32, true}}) {
    if (std::ranges::find(precisions, cuda::name(precision)) == precisions.end()) continue;
    try {
      Training training(spec, count, classes, precision, tuned);
      const Clock::time_point began = Clock::now();
      training.step();
      const double first_s = Seconds(Clock::now() - began).count();
      std::printf("%s, %s: first step %.2f s; %s\n", spec.name.c_str(),
                  cuda::name(precision).data(), first_s, training.said().c_str());
      std::fflush(stdout);  // a run may be stopped before it finishes
      for (int warm = 0; warm < 2; ++warm) training.step();
      const double before = training.loss();
      const auto timings = report.measure_interleaved({{spec.name, [&] { training.step(); }, 20}});
      if (!std::isfinite(training.loss()) || training.loss() >= before)
        throw std::runtime_error(spec.name + ": the loss did not fall");
      report.add(spec.name,
                 {{"precision", std::string(cuda::name(precision))},
                  {"graph, tuned", tuned ? "yes" : "no"},
                  {"batch", count},
                  {"first step, s", first_s},
                  {"images/s", static_cast<double>(count) / timings[0].median_ms * 1000}},
                 timings[0]);
      report.save();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s, %s%s: %s\n", spec.name.c_str(), cuda::name(precision).data(),
                   tuned ? ", graph, tuned" : "", error.what());
      passed = false;
    }
  }
  return passed;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Report report("bench_cuda_nn");
  CLI::App app{"Training steps of nn's models on a card"};
  std::size_t batch = 128;
  struct Task {
    nn::ModelSpec model;
    std::int32_t classes;
  };
  const std::map<std::string, Task> tasks{{"lenet5", {nn::lenet5(), 10}},
                                          {"lstm", {nn::lstm(128), 10}},
                                          {"resnet20", {nn::resnet20(), 10}},
                                          {"resnet50", {nn::resnet50(), 1000}}};
  std::vector<std::string> models{"lenet5", "lstm", "resnet20", "resnet50"};
  app.add_option("--model", models, "what is trained, in this order")
      ->check(CLI::IsMember(models))
      ->capture_default_str();
  std::vector<std::string> precisions{"f32", "tf32", "bf16"};
  app.add_option("--precision", precisions, "in which precisions")
      ->check(CLI::IsMember(precisions))
      ->capture_default_str();
  app.add_option("--batch", batch, "images a step")->capture_default_str();
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  try {
    std::printf("%s\n", cuda::device(0).name.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  bool passed = true;
  for (const std::string& model : models) {
    const Task& task = tasks.at(model);
    passed = run(report, task.model, batch, task.classes, precisions) && passed;
  }
  const int status = report.finish();
  return passed ? status : 1;
}
