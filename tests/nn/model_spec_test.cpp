#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>

#include "support/catch.hpp"

using namespace fast::nn;

TEST_CASE("LeNet-5 has 61,706 parameters, an MLP those of its widths") {
  CHECK(parameter_count(lenet5()) == 61706);
  CHECK(parameter_count(lenet5(7)) == 61706 - 3 * 85);
  CHECK(parameter_count(mlp({784, 256, 10})) == 784 * 256 + 256 + 256 * 10 + 10);
  CHECK(parameter_count(mlp({3, 2})) == 8);
}

TEST_CASE("ResNet-20 has 272,474 parameters and the statistics of its 21 normalizations") {
  const ModelSpec spec = resnet20();
  CHECK(parameter_count(spec) == 272474);
  const std::vector<ParameterSpec> list = parameters(spec), statistics = buffers(spec);
  CHECK(list[0].shape == Shape{16, 3, 3, 3});
  CHECK(list[1].name == "bn1.weight");
  CHECK(list[1].initial == 1);
  CHECK(list.back().name == "fc1.bias");
  REQUIRE(statistics.size() == 42);
  CHECK(statistics[1].name == "bn1.running_var");
  CHECK(statistics.back().offset + statistics.back().count == 2 * (16 * 7 + 32 * 7 + 64 * 7));
  CHECK(shapes(spec)[20] == Shape{64, 8, 8});
}

TEST_CASE("parameters carry names, shapes and places without gaps") {
  const std::vector<ParameterSpec> list = parameters(lenet5());
  REQUIRE(list.size() == 10);
  CHECK(list[0].name == "conv1.weight");
  CHECK(list[0].shape == Shape{6, 1, 5, 5});
  CHECK(list[0].fan_in == 25);
  CHECK(list[3].name == "conv2.bias");
  CHECK(list[4].name == "fc1.weight");
  CHECK(list[4].shape == Shape{120, 400});
  CHECK(list[9].name == "fc3.bias");
  std::size_t offset = 0;
  for (const ParameterSpec& p : list) {
    CHECK(p.offset == offset);
    offset += p.count;
  }
  CHECK(offset == 61706);
}

TEST_CASE("an LSTM has PyTorch's weights, gates one below the other, and one bias") {
  const std::vector<ParameterSpec> list = parameters(lstm(64));
  CHECK(parameter_count(lstm(64)) == 24458);
  REQUIRE(list.size() == 5);
  CHECK(list[0].name == "lstm1.weight_ih");
  CHECK(list[0].shape == Shape{256, 28});
  CHECK(list[1].name == "lstm1.weight_hh");
  CHECK(list[1].shape == Shape{256, 64});
  CHECK(list[1].fan_in == 92);
  CHECK(list[2].name == "lstm1.bias");
  CHECK(list[2].fan_in == 0);
  const ModelSpec two{"two", {5, 3}, {Lstm{4, true}, Relu{}, Lstm{2}, Dense{2}}};
  CHECK(shapes(two) == std::vector<Shape>{{5, 3}, {5, 4}, {5, 4}, {2}, {2}});
  CHECK(parameters(two)[3].name == "lstm2.weight_ih");
}

TEST_CASE("a model tells which samples it takes") {
  CHECK(takes(lenet5(), {28, 28}));
  CHECK(takes(lstm(), {1, 28, 28}));
  CHECK(takes(mlp({784, 10}), {1, 28, 28}));
  CHECK_FALSE(takes(lstm(), {3, 32, 32}));
  CHECK_FALSE(takes(resnet50(), {3, 32, 32}));
}

TEST_CASE("shapes follow from kernel, stride and padding") {
  const ModelSpec spec{"m", {3, 9, 8}, {Conv2d{4, 3, 2, 1}, MaxPool{2, 1}, Flatten{}, Dense{2}}};
  CHECK(shapes(spec) == std::vector<Shape>{{3, 9, 8}, {4, 5, 4}, {4, 4, 3}, {48}, {2}});
}

TEST_CASE("a layer that does not fit is named with its input") {
  const auto message = [](Shape in, std::vector<LayerSpec> layers) {
    try {
      shapes({"m", std::move(in), std::move(layers)});
    } catch (const fast::Error& error) {
      CHECK(error.kind() == fast::ErrorKind::argument);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message({1, 4, 4}, {Dense{3}}),
             ContainsSubstring("layer 1 (dense 3): it takes vectors and sequences, its "
                               "input is [1x4x4]; put a flatten layer before"));
  CHECK_THAT(message({4}, {Relu{}, Conv2d{3, 3}}),
             ContainsSubstring("layer 2 (conv2d 3, kernel 3"));
  CHECK_THAT(message({1, 4, 4}, {Conv2d{3, 5}}),
             ContainsSubstring("larger than its input [1x4x4]"));
  CHECK_THAT(message({1, 4, 4}, {Conv2d{3, 3, 0}}), ContainsSubstring("must be positive"));
  CHECK_THAT(message({1, 4, 4}, {Conv2d{3, 3, 1, 3}}),
             ContainsSubstring("padding must be smaller"));
  CHECK_THAT(message({1, 4, 4}, {Conv2d{0, 3}}), ContainsSubstring("channels must be positive"));
  CHECK_THAT(message({1, 4, 4}, {MaxPool{5, 1}}),
             ContainsSubstring("layer 1 (max pool 5, stride 1, padding 0)"));
  CHECK_THAT(message({3, 4, 4}, {GroupNorm{2}}), ContainsSubstring("3 channels do not split"));
  CHECK_THAT(message({3}, {BatchNorm{}}), ContainsSubstring("its input is [3]"));
  CHECK_THAT(message({3, 4, 4}, {BatchNorm{0}}), ContainsSubstring("momentum 0"));
  CHECK_THAT(message({3, 4, 4}, {Residual{{Conv2d{2, 1}}, {}}}),
             ContainsSubstring("its body gives [2x4x4], its shortcut [3x4x4]"));
  CHECK_THAT(message({3, 4, 4}, {Residual{{Conv2d{2, 5}}, {}}}),
             ContainsSubstring("layer 1 (residual of 1 layers): body: layer 1 (conv2d 2"));
  CHECK_THAT(message({4}, {Dense{-1}}), ContainsSubstring("units must be positive"));
  CHECK(message({4, 4}, {Dense{1}}) == "accepted");
  CHECK_THAT(message({4}, {Lstm{3}}), ContainsSubstring("it takes sequences [steps x features]"));
  CHECK_THAT(message({4, 4}, {Lstm{0}}), ContainsSubstring("layer 1 (lstm 0): hidden units"));
  CHECK(message({4, 4}, {Lstm{3, true}}) == "accepted");
  CHECK_THAT(message({1, 2, 3, 4}, {Dense{1}}), ContainsSubstring("input [1x2x3x4] is neither"));
  CHECK_THAT(message({0}, {Dense{1}}), ContainsSubstring("input [0] is neither"));
  CHECK_THAT(message({1, 4, 4}, {Relu{}}), ContainsSubstring("no vector or sequence"));
  CHECK_THROWS_WITH(mlp({5}), ContainsSubstring("1 widths given"));
}

TEST_CASE("ResNet-50 has torchvision's parameters and buffers") {
  CHECK(parameter_count(resnet50()) == 25557032);
  CHECK(parameter_count(resnet50(10)) == 25557032 - 990 * 2049);
  const std::vector<ParameterSpec> statistics = buffers(resnet50());
  CHECK(statistics.back().offset + statistics.back().count == 2 * 26560);
  const std::vector<Shape> all = shapes(resnet50());
  CHECK(all[4] == Shape{64, 56, 56});
  CHECK(all[all.size() - 3] == Shape{2048, 7, 7});
}

TEST_CASE("models have the names of fast-train --model") {
  CHECK(parameter_count(model_by_name("lenet", 7)) == parameter_count(lenet5(7)));
  CHECK(parameter_count(model_by_name("mlp:5-3", 2)) == 784 * 5 + 5 + 5 * 3 + 3 + 3 * 2 + 2);
  CHECK(parameter_count(model_by_name("lstm:8", 3)) == parameter_count(lstm(8, 3)));
  CHECK(parameter_count(model_by_name("resnet50", 1000)) == 25557032);
  CHECK_THROWS_WITH(model_by_name("lenett", 10), ContainsSubstring("did you mean \"lenet\"?"));
  for (const char* bad : {"", "mlp:", "mlp:4-", "mlp:-4", "lstm:", "lstm:0", "lstm:x"}) {
    INFO(bad);
    CHECK_THROWS_AS(model_by_name(bad, 10), fast::Error);
  }
}
