// What bench/serve.py compares a server with: evaluate() in a loop, in batches of 64. Prints images
// per second and seconds of processor time, then the milliseconds of each batch. With --save,
// writes the model's weights and ends.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fast/core/random.hpp>
#include <fast/nn/network.hpp>
#include <fast/train/safetensors.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr std::size_t batch_size = 64;

std::vector<float> random_values(const fast::nn::Shape& input) {
  const auto size = static_cast<std::size_t>(
      std::accumulate(input.begin(), input.end(), std::int64_t{1}, std::multiplies<>()));
  std::vector<float> values(batch_size * size);
  fast::Rng rng(1);
  for (float& value : values) value = static_cast<float>(rng.uniform());
  return values;
}

std::vector<double> batch_ms(fast::nn::Network<float>& network, const fast::Batch& batch,
                             double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::vector<double> found;
  auto before = Clock::now();
  do {
    network.evaluate(batch);
    const auto after = Clock::now();
    found.push_back(std::chrono::duration<double, std::milli>(after - before).count());
    before = after;
  } while (before < end);
  return found;
}

void print_loop(fast::nn::Network<float>& network, double seconds) {
  const std::vector<float> values = random_values(network.spec().input);
  const std::vector<std::int32_t> labels(batch_size);
  const fast::Batch batch{values, labels, network.spec().input};
  for (int i = 0; i < 10; ++i) network.evaluate(batch);
  const std::clock_t began = std::clock();
  const std::vector<double> times = batch_ms(network, batch, seconds);
  const double processor_s = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  const double took_ms = std::accumulate(times.begin(), times.end(), 0.0);
  std::printf("%.1f %.3f\n", 1e3 * static_cast<double>(batch_size * times.size()) / took_ms,
              processor_s);
  for (const double ms : times) std::printf("%.4f\n", ms);
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
    print_loop(network, seconds);
    return 0;
  }
  std::vector<fast::TensorView> views = network.parameter_views();
  for (const fast::TensorView& buffer : network.buffer_views()) views.push_back(buffer);
  fast::train::save_safetensors(save, views);
  return 0;
}
