// What bench/serve.py compares a server with: evaluate() in a loop, in batches of 64. Prints images
// per second. With --save, writes the model's weights and ends.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fast/core/random.hpp>
#include <fast/nn/network.hpp>
#include <fast/train/safetensors.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr std::size_t batch_size = 64;

double images_per_s(fast::nn::Network<float>& network, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto& input = network.spec().input;
  const auto size = static_cast<std::size_t>(
      std::accumulate(input.begin(), input.end(), std::int64_t{1}, std::multiplies<>()));
  std::vector<float> values(batch_size * size);
  fast::Rng rng(1);
  for (float& value : values) value = static_cast<float>(rng.uniform());
  const std::vector<std::int32_t> labels(batch_size);
  const fast::Batch batch{values, labels, input};
  for (int i = 0; i < 10; ++i) network.evaluate(batch);
  const auto began = Clock::now();
  std::size_t images = 0;
  double took = 0;
  while (took < seconds) {
    network.evaluate(batch);
    images += batch_size;
    took = std::chrono::duration<double>(Clock::now() - began).count();
  }
  return static_cast<double>(images) / took;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("evaluate() in a loop");
  std::string model = "lenet", save;
  double seconds = 2;
  app.add_option("--model", model, "name of a model (lenet)");
  app.add_option("--seconds", seconds, "length of the loop (2)");
  app.add_option("--save", save, "file for the weights");
  CLI11_PARSE(app, argc, argv);
  fast::nn::Network<float> network(fast::nn::model_by_name(model, 10), 1);
  if (save.empty()) {
    std::printf("%.1f\n", images_per_s(network, seconds));
    return 0;
  }
  std::vector<fast::TensorView> views = network.parameter_views();
  for (const fast::TensorView& buffer : network.buffer_views()) views.push_back(buffer);
  fast::train::save_safetensors(save, views);
  return 0;
}
