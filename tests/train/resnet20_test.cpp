// ResNet-20 as its users train it: fast-train on a directory in CIFAR-10's binary layout. The
// images are synthetic, made here, and easy: noise with a tint in each channel, a class a tint.
#include <fmt/core.h>
#include <algorithm>
#include <cstdlib>
#include <fast/core/random.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

namespace {

constexpr int classes = 10;
constexpr std::size_t channel_pixels = 32 * 32;

/// -1, 0 or 1 for each of three channels, no two classes alike.
int tint(int label, std::size_t channel) {
  constexpr int powers[] = {1, 3, 9};
  return label / powers[channel] % 3 - 1;
}

void write_tinted_noise(const std::filesystem::path& path, std::size_t images, Rng& rng) {
  std::ofstream file(path, std::ios::binary);
  for (std::size_t i = 0; i < images; ++i) {
    const int label = static_cast<int>(i % classes);
    file.put(static_cast<char>(label));
    for (std::size_t e = 0; e < 3 * channel_pixels; ++e) {
      const double value = 128 + 40 * rng.normal() + 25 * tint(label, e / channel_pixels);
      file.put(static_cast<char>(std::clamp(value, 0.0, 255.0)));
    }
  }
}

}  // namespace

TEST_CASE("ResNet-20 learns a few hundred synthetic images in CIFAR-10's layout") {
  const testing::TemporaryDirectory directory;
  const std::uint64_t seed = test_seed(5);
  Rng rng(seed);
  for (int batch = 1; batch <= 5; ++batch) {
    write_tinted_noise(directory / fmt::format("data_batch_{}.bin", batch), 80, rng);
  }
  write_tinted_noise(directory / "test_batch.bin", 100, rng);
  const std::string summary_path = (directory / "summary.json").string();
  const std::string command = fmt::format(
      "{} --exchange local --workers 2 --topology ring --algorithm atc --model resnet20 --data {} "
      "--augment --batch-size 16 --epochs 6 --quiet --out {} --summary-json {} >&2",
      FAST_TRAIN_PROGRAM, directory.path().string(), directory.path().string(), summary_path);
  INFO("FAST_TEST_SEED=" << seed << " " << command);
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream file(summary_path);
  const auto summary = nlohmann::json::parse(file);
  CHECK(summary.at("rounds") == 6 * (400 / 2 / 16));
  CHECK(summary.at("test_accuracy_mean_model") > 0.7);
  CHECK(summary.at("test_accuracy_worst_worker") > 0.7);
  CHECK(std::filesystem::file_size(directory / "mean-model.safetensors") > 4 * 272474);
}
