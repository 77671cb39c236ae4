#include <fast/core/error.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/network.hpp>

#include "nn/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::nn;
using Catch::Matchers::EndsWith;

namespace {

const ModelEnds fashion{{1, 28, 28}, 10};

ModelSpec parsed_model(const std::string& text, const ModelEnds& ends = fashion) {
  return parse_model(text, "net.toml", ends);
}

std::string refusal(const std::string& text, const ModelEnds& ends = fashion) {
  try {
    parsed_model(text, ends);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::argument);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("LeNet-5 from a file is LeNet-5 by name") {
  const ModelSpec spec = parsed_model(R"(
    name = "lenet5"
    layers = [
      {type = "conv2d", channels = 6, kernel = 5, padding = 2}, {type = "relu"}, {type = "max_pool"},
      {type = "conv2d", channels = 16, kernel = 5}, {type = "relu"}, {type = "max_pool"},
      {type = "flatten"},
      {type = "dense", units = 120}, {type = "relu"},
      {type = "dense", units = 84}, {type = "relu"},
      {type = "dense"},
    ])");
  CHECK(spec.name == "lenet5");
  CHECK(shapes(spec) == shapes(lenet5()));
  const Samples samples(5, {1, 28, 28}, 10);
  Network<float> found(spec, 3), expected(lenet5(), 3);
  CHECK(found.loss_and_gradients(samples.batch()) == expected.loss_and_gradients(samples.batch()));
}

TEST_CASE("layers within layers, other forms of lists and an input of its own are read") {
  const ModelSpec spec = parsed_model(R"(
input = [2, 4, 4]
[[layers]]
type = "residual"
  [[layers.body]]
  type = "conv2d"
  channels = 4
  kernel = 3
  padding = 1
  bias = false
  [[layers.body]]
  type = "batch_norm"
  epsilon = 1
  [[layers.shortcut]]
  type = "conv2d"
  channels = 4
  kernel = 1
[[layers]]
type = "global_average_pool"
[[layers]]
type = "dense"
)",
                                      {{32}, 3});
  CHECK(spec.name == "net");
  CHECK(spec.input == Shape{2, 4, 4});
  CHECK(shapes(spec).back() == Shape{3});
  const auto& residual = std::get<Residual>(spec.layers.at(0));
  CHECK(std::get<BatchNorm>(residual.body.at(1)).epsilon == 1);
  CHECK_FALSE(std::get<Conv2d>(residual.body.at(0)).bias);
  CHECK(std::get<Conv2d>(residual.shortcut.at(0)).bias);
}

TEST_CASE(
    "samples of two sides are images of one channel for a model that begins with a convolution") {
  const char* text = R"(layers = [{type = "conv2d", channels = 2, kernel = 3},
                                  {type = "flatten"}, {type = "dense"}])";
  CHECK(parsed_model(text, {{8, 8}, 2}).input == Shape{1, 8, 8});
  CHECK(parsed_model(R"(layers = [{type = "lstm", hidden = 3}, {type = "dense"}])", {{8, 8}, 2})
            .input == Shape{8, 8});
}

TEST_CASE("an image of one channel is a sequence of its rows for a model that begins with steps") {
  for (const char* first : {R"({type = "conv1d", channels = 3, kernel = 3})",
                            R"({type = "lstm", hidden = 3, every_step = true})",
                            R"({type = "gru", hidden = 3, every_step = true})",
                            R"({type = "attention", heads = 2})", R"({type = "position"})"}) {
    const std::string text = fmt::format("layers = [{}, {{type = \"dense\"}}]", first);
    CHECK(parsed_model(text, {{1, 60, 2}, 2}).input == Shape{60, 2});
    CHECK_THAT(refusal(text, {{3, 60, 2}, 2}),
               ContainsSubstring("its input is [3x60x2]; no layer makes a sequence of images"));
    CHECK_THAT(refusal(text, {{120}, 2}),
               ContainsSubstring("its input is [120]; give samples steps, as input = [120, 1]"));
    CHECK(parsed_model("input = [60, 2]\n" + text, {{120}, 2}).input == Shape{60, 2});
  }
}

TEST_CASE("errors of a model file name file, line and layer") {
  const auto layers = [](const std::string& list) { return "layers = [\n" + list + "\n]"; };
  CHECK_THAT(refusal(layers("{type = \"flatten\"},\n{type = \"dens\"}")),
             ContainsSubstring("net.toml:3: layer 2: there is no layer \"dens\"; did you mean "
                               "\"dense\"?"));
  CHECK_THAT(
      refusal(layers("{type = \"conv2d\", channels = 3, kernal = 3}")),
      ContainsSubstring("net.toml:2: layer 1 (conv2d): \"kernel\" is missing; a whole number "
                        "is required; the key \"kernal\" is there"));
  CHECK_THAT(refusal(layers("{type = \"gru\", every_step = true}")),
             EndsWith("\"hidden\" is missing; a whole number is required"));
  CHECK_THAT(
      refusal(layers("{type = \"conv2d\", channels = 3, kernel = 3, stide = 2}")),
      ContainsSubstring("net.toml:2: layer 1 (conv2d): there is no key \"stide\"; did you mean "
                        "\"stride\"?; its keys are channels, kernel, stride, padding and "
                        "bias"));
  CHECK_THAT(refusal(layers("{type = \"relu\", size = 2}")),
             ContainsSubstring("layer 1 (relu): there is no key \"size\"; this layer has none"));
  CHECK_THAT(refusal(layers("{type = \"dense\", units = \"many\"}")),
             ContainsSubstring("units: a string was found; a whole number is required"));
  CHECK_THAT(refusal(layers("{type = \"lstm\", hidden = 2, every_step = 1}")),
             ContainsSubstring("every_step: a whole number was found; true or false"));
  CHECK_THAT(
      refusal(layers("{type = \"flatten\"},\n{type = \"conv2d\", channels = 3, kernel = 3}")),
      ContainsSubstring("net.toml:3: layer 2 (conv2d 3, kernel 3") &&
          ContainsSubstring("its input is [784]"));
  CHECK_THAT(refusal(layers("{type = \"residual\", body = [\n{type = \"dense\", units = 3}]}")),
             ContainsSubstring("net.toml:3: layer 1 (residual): body: layer 1 (dense 3): ") &&
                 ContainsSubstring("put a flatten layer before"));
  CHECK_THAT(refusal(layers("{channels = 3}")), ContainsSubstring("layer 1: \"type\" is missing"));
  CHECK_THAT(refusal(layers("3")), ContainsSubstring("layer 1: a whole number was found"));
}

TEST_CASE("what is no model in a file is refused") {
  CHECK_THAT(refusal("layers = ["), ContainsSubstring("net.toml:1:"));
  CHECK_THAT(refusal("name = \"a\""), ContainsSubstring("\"layers\" is missing"));
  CHECK_THAT(refusal("layers = 3"),
             ContainsSubstring("a whole number was found; a list of layers"));
  CHECK_THAT(refusal("layers = []", {{}, 3}), ContainsSubstring("\"input\" is missing"));
  CHECK_THAT(refusal("layers = []"), ContainsSubstring("the list is empty"));
  CHECK_THAT(refusal("layer = []"),
             ContainsSubstring("there is no key \"layer\"; did you mean \"layers\"?"));
  CHECK_THAT(refusal("name = 3\nlayers = []"), ContainsSubstring("name: a whole number was found"));
  CHECK_THAT(refusal("input = [0]\nlayers = []"), ContainsSubstring("positive whole numbers"));
  CHECK_THAT(refusal("input = [1, 2, 3, 4]\nlayers = []"), ContainsSubstring("4 sides"));
  CHECK_THAT(refusal("layers = [{type = \"relu\"}, {type = \"flatten\"}]"),
             ContainsSubstring("none has parameters"));
  CHECK_THAT(refusal("layers = [{type = \"conv2d\", channels = 3, kernel = 3}]"),
             ContainsSubstring("net.toml:1: ") &&
                 ContainsSubstring("end it with a flatten and a dense layer"));
  CHECK_THROWS_WITH(read_model("/no/such.toml", fashion), ContainsSubstring("/no/such.toml"));
}

TEST_CASE("a model is described layer by layer") {
  const std::string text = describe(lenet5());
  CHECK_THAT(text, ContainsSubstring("    1  conv2d 6, kernel 5, stride 1, padding 2"));
  CHECK_THAT(text, ContainsSubstring("[6x28x28]              156\n"));
  CHECK_THAT(text, ContainsSubstring("all") && ContainsSubstring("61706\n"));
}

TEST_CASE("the transformer of the benchmarks has attention in blocks of its own") {
  const ModelSpec spec = read_model(FAST_SOURCE_DIR "/bench/transformer.toml", {{32}, 40});
  CHECK(shapes(spec).back() == Shape{32, 40});
  const auto& attention = std::get<Attention>(std::get<Residual>(spec.layers.at(4)).body.at(1));
  CHECK(attention.heads == 4);
  CHECK(attention.causal);
  const std::vector<ParameterSpec> list = parameters(spec);
  const auto found = std::ranges::find(list, "attention2.out_proj.weight", &ParameterSpec::name);
  REQUIRE(found != list.end());
  CHECK(found->shape == Shape{64, 64});
  // Two norms, attention and two dense layers a block.
  const std::size_t block = 2 * 128 + 4 * (64 * 64 + 64) + (65 * 256 + 257 * 64);
  CHECK(parameter_count(spec) == 40 * 64 + 32 * 64 + 2 * block + 128 + 65 * 40);
}
