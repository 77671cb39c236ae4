// Layers and losses against values of PyTorch: tests/data/golden_layers.json, which
// tests/data/layers_oracle.py has computed.
#include <fast/core/error.hpp>
#include <fast/nn/network.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "nn/probe.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

nlohmann::json golden() {
  std::ifstream file(FAST_SOURCE_DIR "/tests/data/golden_layers.json");
  REQUIRE(file.good());
  return nlohmann::json::parse(file);
}

/// The layer of a case and the shape of its inputs.
std::pair<LayerSpec, Shape> layer_of(const std::string& name, const std::vector<Index>& sizes) {
  const std::map<std::string, std::function<std::pair<LayerSpec, Shape>()>> known = {
      {"layer_norm",
       [&] {
         return std::pair(LayerSpec(LayerNorm{1e-3}), Shape{4, sizes[0]});
       }},
      {"embedding",
       [&] {
         return std::pair(LayerSpec(Embedding{sizes[0], sizes[1]}), Shape{5});
       }},
      {"gelu", [&] { return std::pair(LayerSpec(Gelu{}), Shape{7}); }},
      {"average_pool",
       [&] {
         return std::pair(LayerSpec(AveragePool{sizes[0], sizes[1], sizes[2]}), Shape{2, 5, 6});
       }},
      {"gru",
       [&] {
         return std::pair(LayerSpec(Gru{sizes[0]}), Shape{5, 3});
       }},
      {"gru_every_step",
       [&] {
         return std::pair(LayerSpec(Gru{sizes[0], true}), Shape{5, 3});
       }},
      {"conv1d",
       [&] {
         const Conv1d conv{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] != 0};
         return std::pair(LayerSpec(conv), Shape{7, 2});
       }},
      {"tanh", [&] { return std::pair(LayerSpec(Tanh{}), Shape{7}); }},
      {"sigmoid", [&] { return std::pair(LayerSpec(Sigmoid{}), Shape{7}); }},
      {"leaky_relu", [&] { return std::pair(LayerSpec(LeakyRelu{0.2}), Shape{7}); }},
      {"softmax",
       [&] {
         return std::pair(LayerSpec(Softmax{}), Shape{4, 5});
       }},
      {"attention",
       [&] {
         return std::pair(LayerSpec(Attention{sizes[0], sizes[1] != 0}), Shape{5, 6});
       }},
      {"dense", [&] {
         return std::pair(LayerSpec(Dense{sizes[0]}), Shape{5, 3});
       }}};
  return known.at(name)();
}

}  // namespace

TEST_CASE("layers compute what PyTorch does, forward and backward") {
  const nlohmann::json all = golden();
  REQUIRE(all.at("layers").size() == 16);
  for (const nlohmann::json& each : all.at("layers")) {
    const auto name = each.at("layer").get<std::string>();
    INFO(name);
    const auto [layer, shape] = layer_of(name, each.at("sizes"));
    Probe probe(layer, shape, each.at("count"));
    const Values parameters = each.at("parameters");
    REQUIRE(parameters.size() == probe.parameters());
    check_close(probe.forward(parameters, each.at("inputs")), each.at("outputs"));
    const Probe::Gradients found = probe.backward(parameters, each.at("grads"));
    check_close(found.parameters, each.at("parameter_grads"));
    if (!each.at("input_grads").is_null()) check_close(found.inputs, each.at("input_grads"));
  }
}

TEST_CASE("losses and their gradients are PyTorch's") {
  const nlohmann::json all = golden();
  REQUIRE(all.at("losses").size() == 3);
  for (const nlohmann::json& each : all.at("losses")) {
    LossSpec spec{Loss::cross_entropy, each.at("delta")};
    for (const Loss loss : {Loss::mse, Loss::huber, Loss::binary_cross_entropy})
      if (name(loss) == each.at("loss").get<std::string>()) spec.kind = loss;
    INFO(name(spec.kind));
    const Values outputs = each.at("outputs");
    const std::vector<float> targets = each.at("targets");
    Values gradient(outputs.size());
    const Batch batch{{}, {}, {}, targets, {3}};
    CHECK(loss_of<double>(spec, outputs, batch, gradient).sum / 4 ==
          Approx(each.at("mean").get<double>()));
    check_close(gradient, each.at("grads"));
  }
}

TEST_CASE("dropout drops its share of values, scales the others and is off in evaluation") {
  Probe probe(Dropout{0.25}, {2000}, 3);
  const Values ones(6000, 1);
  const Values found = probe.forward({}, ones);
  double dropped = 0;
  for (const double value : found) {
    REQUIRE((value == 0 || value == Approx(1 / 0.75)));
    dropped += value == 0 ? 1 : 0;
  }
  CHECK(dropped / 6000 == Approx(0.25).margin(0.03));  // five standard deviations
  CHECK(probe.backward({}, ones).inputs == found);     // the same mask
  CHECK(probe.forward({}, ones) == found);
  CHECK(probe.forward({}, ones, false) == ones);
  CHECK(Values(found.begin(), found.begin() + 2000) !=
        Values(found.begin() + 2000, found.begin() + 4000));
}

TEST_CASE("dropout depends on weights and samples only, however a batch is divided") {
  const ModelSpec spec{"drop", {6}, {Dense{16}, Dropout{}, Relu{}, Dropout{}, Dense{3}}};
  const Samples samples(8, spec.input, 3);
  Network<double> whole(spec, 1), parts(spec, 1);
  const double loss = whole.loss_and_gradients(samples.batch());
  double sum = 0;
  for (std::size_t i = 0; i < 8; ++i) sum += parts.loss_and_gradients(samples.batch(i, 1));
  CHECK(loss == Approx(sum / 8));
  CHECK(whole.loss_and_gradients(samples.batch()) == loss);
  CHECK(whole.evaluate(samples.batch()).sum / 8 != Approx(loss));
  whole.parameters()[0] += 1e-9;  // a step
  CHECK(whole.loss_and_gradients(samples.batch()) != Approx(loss).epsilon(1e-4));
  Network<double> other(spec, 2);
  CHECK(other.loss_and_gradients(samples.batch()) != Approx(loss).epsilon(1e-4));
}

TEST_CASE("a ReLU that a layer includes leaves the choice of dropout as it is") {
  const auto loss = [](const std::vector<LayerSpec>& layers) {
    const ModelSpec spec{"relu", {2, 3, 3}, layers};
    Network<double> network(spec, 1);
    const Values first{0.1, 0.1, 5, 5};  // weights and biases: the ReLU passes all values on
    std::copy(first.begin(), first.end(), network.parameters().begin());
    const Samples samples(6, spec.input, 2);
    return network.loss_and_gradients(samples.batch());
  };
  const double third = loss({BatchNorm{}, Flatten{}, Dropout{}, Dense{2}});
  CHECK(loss({BatchNorm{}, Relu{}, Dropout{}, Flatten{}, Dense{2}}) == Approx(third));
  CHECK(loss({BatchNorm{}, Dropout{}, Flatten{}, Dense{2}}) != Approx(third).epsilon(1e-4));
}

TEST_CASE("max pooling finds its maxima again when dropout follows") {
  const auto gradient_of_conv = [](const std::vector<LayerSpec>& layers) {
    const ModelSpec spec{"pool", {1, 8, 8}, layers};
    const Samples samples(8, spec.input, 3);
    Network<double> network(spec, 1);
    network.loss_and_gradients(samples.batch());
    double squares = 0;
    for (const double g : network.gradients().first(4 * 9)) squares += g * g;
    return std::sqrt(squares);
  };
  const double with =
      gradient_of_conv({Conv2d{4, 3}, MaxPool{}, Dropout{0.5}, Flatten{}, Dense{3}});
  const double without = gradient_of_conv({Conv2d{4, 3}, MaxPool{}, Flatten{}, Dense{3}});
  CHECK(with > 0.3 * without);
}

TEST_CASE("an embedding refuses what is no token") {
  Probe probe(Embedding{4, 1}, {2}, 1);
  CHECK(probe.forward({5, 6, 7, 8}, {3, 0}) == Values{8, 5});
  for (const double bad : {4.0, -1.0, 0.5, std::nan("")})
    CHECK_THROWS_WITH(probe.forward({5, 6, 7, 8}, {0, bad}),
                      ContainsSubstring("whole numbers from 0 to 3"));
}

TEST_CASE("new layers refuse inputs that do not fit") {
  const auto message = [](Shape in, LayerSpec layer) {
    try {
      shapes({"m", std::move(in), {std::move(layer)}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message({1, 4, 4}, LayerNorm{}), ContainsSubstring("group norm takes images"));
  CHECK_THAT(message({4}, LayerNorm{0}), ContainsSubstring("epsilon 0"));
  CHECK_THAT(message({4, 4}, Embedding{3, 2}), ContainsSubstring("vectors of tokens"));
  CHECK_THAT(message({4}, Embedding{0, 2}), ContainsSubstring("must be positive"));
  CHECK_THAT(message({4}, Dropout{1}), ContainsSubstring("rate 1"));
  CHECK_THAT(message({4}, AveragePool{}), ContainsSubstring("it takes images"));
  CHECK_THAT(message({4}, Gru{3}), ContainsSubstring("it takes sequences"));
  CHECK_THAT(message({4, 2}, Gru{0}), ContainsSubstring("hidden units must be positive"));
  CHECK_THAT(message({4, 2}, Conv1d{3, 5}), ContainsSubstring("longer than its input [4x2]"));
  CHECK_THAT(message({4, 2}, Conv1d{3, 2, 1, 2}), ContainsSubstring("padding must be smaller"));
}
