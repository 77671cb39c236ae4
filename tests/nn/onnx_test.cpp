#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/core/version.hpp>
#include <fast/nn/network.hpp>
#include <fast/nn/onnx.hpp>

#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>

#include "nn/layer_examples.hpp"
#include "nn/samples.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

std::vector<TensorView> all_views(Network<float>& network) {
  std::vector<TensorView> views = network.parameter_views();
  for (TensorView& view : network.buffer_views()) views.push_back(std::move(view));
  return views;
}

void write(const std::filesystem::path& path, const void* data, std::size_t size_bytes) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(size_bytes));
}

/// Evaluates NAME.onnx in a directory: NAME.input in, of NAME.shape, NAME.logits to compare.
int evaluate_elsewhere(const std::filesystem::path& directory) {
  const char* python = std::getenv("FAST_ONNX_PYTHON");
  const std::string command =
      fmt::format("{} {}/tests/nn/onnx_check.py {}", python == nullptr ? "python3" : python,
                  FAST_SOURCE_DIR, directory.string());
  return WEXITSTATUS(std::system(command.c_str()));
}

}  // namespace

TEST_CASE(
    "the reference evaluator of ONNX and ONNX Runtime find the logits that this library does") {
  const testing::TemporaryDirectory directory;
  Rng rng(5);
  const ModelSpec sequences{
      "sequences", {6, 5}, {Lstm{7, true}, Relu{}, Lstm{4, true}, Lstm{9}, Dense{4}}};
  const ModelSpec steps{"every step", {3, 4}, {Lstm{5, true}, Flatten{}, Dense{3}}};
  const ModelSpec step{"one step", {1, 4}, {Lstm{5, true}, Lstm{2}, Dense{3}}};
  std::vector<ModelSpec> models{lenet5(), mlp({784, 32, 7}), resnet20(), lstm(12), sequences, steps,
                                step};
  for (const LayerExample& example : layer_examples()) models.push_back(model_of(example));
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ModelSpec& spec = models[i];
    Network<float> network(spec, 3);
    for (float& value : network.parameters()) value += 0.05F * static_cast<float>(rng.normal());
    for (float& value : network.buffers()) value += static_cast<float>(rng.uniform(0, 0.2));
    const Samples samples(3, spec, static_cast<int>(network.classes()));
    const Batch batch = samples.batch();
    const auto logits = network.forward(batch);
    CHECK(logits.front() != logits[static_cast<std::size_t>(network.classes())]);  // not dead
    const std::string name = fmt::format("{} {}", i, spec.name);
    OnnxNotes notes;
    std::vector<float> raw(batch.inputs.begin(), batch.inputs.end());
    if (i % 2 == 1) {  // the file normalizes: its input are the values before
      const auto channels = static_cast<std::size_t>(spec.input.front());
      const std::size_t entries = i % 4 == 1 ? channels : 1;
      for (std::size_t c = 0; c < entries; ++c) {
        notes.mean.push_back(static_cast<float>(rng.normal()));
        notes.stddev.push_back(static_cast<float>(rng.uniform(0.5, 2)));
      }
      const std::size_t sample = raw.size() / 3, plane = sample / channels;
      for (std::size_t e = 0; e < raw.size(); ++e) {
        const std::size_t c = entries == 1 ? 0 : e % sample / plane;
        raw[e] = raw[e] * notes.stddev[c] + notes.mean[c];
      }
    }
    const std::string bytes = to_onnx(spec, all_views(network), notes);
    write(directory / (name + ".onnx"), bytes.data(), bytes.size());
    std::ofstream(directory / (name + ".shape")) << fmt::format("{}", fmt::join(spec.input, " "));
    write(directory / (name + ".input"), raw.data(), raw.size() * sizeof(float));
    write(directory / (name + ".logits"), logits.data(), logits.size_bytes());
  }
  const int status = evaluate_elsewhere(directory.path());
  if (status == 77) {
    WARN(
        "skipped: no ONNX evaluator (pip install onnx onnxruntime; FAST_ONNX_PYTHON names another "
        "python)");
    return;
  }
  CHECK(status == 0);
}

TEST_CASE(
    "an ONNX file has the metadata, the version, and the normalization only where there is one") {
  Network<float> network(mlp({6, 3}), 1);
  const std::string file =
      to_onnx(network.spec(), network.parameter_views(), {{1}, {2}, {{"fast.classes", "3"}}});
  for (const std::string_view part : {"fast.classes", "normalization.scale", "Mul"})
    CHECK(file.find(part) != std::string::npos);
  CHECK(file.find(version()) != std::string::npos);
  const std::string plain = to_onnx(network.spec(), network.parameter_views(), {{0}, {1}, {}});
  CHECK(plain == to_onnx(network.spec(), network.parameter_views()));
  CHECK(plain.find("normalization") == std::string::npos);
}

TEST_CASE("a model with origins takes 64-bit inputs") {
  Network<float> network(mlp({2, 3}), 1);
  OnnxNotes notes{{0, 0}, {1, 2}, {}, {1.7e9, 0}};
  const std::string file = to_onnx(network.spec(), network.parameter_views(), notes);
  for (const std::string_view part : {"normalization.origins", "Sub", "Cast"})
    CHECK(file.find(part) != std::string::npos);
  notes.origins = {1};
  CHECK_THROWS_WITH(to_onnx(network.spec(), network.parameter_views(), notes),
                    Catch::Contains("1 origins for an input of"));
}

TEST_CASE("a model of the library is recognized by its tensors") {
  for (const ModelSpec& spec : {lenet5(), mlp({20, 8, 5}), resnet20(100), lstm(9, 4)}) {
    Network<float> network(spec, 1);
    CHECK(recognize(all_views(network)).name == spec.name);
    CHECK(shapes(recognize(all_views(network))).back() == shapes(spec).back());
  }
  Network<float> other({"other", {4}, {Dense{2}, Relu{}, Dense{2}, Dense{2}}}, 1);
  CHECK(recognize(all_views(other)).name == "mlp 4-2-2-2");
  std::vector<float> values(4);
  CHECK_THROWS_WITH(recognize({view_of("weights", std::span(values))}),
                    Catch::Contains("lenet5, resnet20, mlp, lstm"));
}

TEST_CASE("tensors that are not the model's make no ONNX file") {
  Network<float> network(mlp({6, 3}), 1);
  CHECK_THROWS_WITH(to_onnx(mlp({6, 4}), network.parameter_views()),
                    Catch::Contains("[4x6]") && Catch::Contains("[3x6]"));
  CHECK_THROWS_WITH(to_onnx(mlp({6, 3, 3}), network.parameter_views()),
                    Catch::Contains("fc1.weight") || Catch::Contains("none of that name"));
  OnnxNotes notes{{0, 0}, {1, 1}, {}};
  CHECK_THROWS_WITH(to_onnx(mlp({6, 3}), network.parameter_views(), notes),
                    Catch::Contains("2 means and 2 standard deviations"));
}
