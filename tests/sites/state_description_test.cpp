#include "sites/state_description.hpp"

#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>

#include <cstring>
#include <random>

#include "sites/outer_step.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;

namespace {

/// A model whose tensors differ in type, role and shape.
struct Model {
  std::vector<float> weight{1, 2, 3, 4, 5, 6}, mean{7, 8};
  std::vector<double> bias{0.5};
  ParameterLayout layout() {
    TensorView matrix = view_of("layer.weight", std::span(weight));
    matrix.shape = {2, 3};
    TensorView scalar = view_of("layer.bias", std::span(bias));
    scalar.shape = {};
    return ParameterLayout({matrix, view_of("mean", std::span(mean), Role::buffer), scalar});
  }
};

/// `bytes` of weights, and this text as their description.
std::vector<std::byte> state_of(std::size_t bytes, const std::string& text) {
  std::vector<std::byte> state(bytes, std::byte{1});
  for (const char c : text) state.push_back(static_cast<std::byte>(c));
  for (std::size_t length = text.size(), i = 0; i < 8; ++i, length >>= 8)
    state.push_back(static_cast<std::byte>(length & 0xff));
  return state;
}

std::string refusal(std::vector<std::byte> state) {
  try {
    weights_in(state);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string refusal(const std::string& text) { return refusal(state_of(64, text)); }

std::string tensor(const std::string& name, const std::string& shape, const std::string& dtype,
                   const std::string& offset) {
  return fmt::format(R"({{"name":"{}","shape":{},"dtype":"{}","role":"parameter","offset":{}}})",
                     name, shape, dtype, offset);
}

std::string tensors(const std::string& list) { return R"({"tensors":[)" + list + "]}"; }

}  // namespace

TEST_CASE("a state has its weights with names, shapes and types, and is as long as it should be") {
  Model model;
  const ParameterLayout layout = model.layout();
  OuterStep outer(layout, algorithm::noloco());
  outer.start(layout);
  const auto state = outer.state();
  REQUIRE(state->size_bytes() == outer.state_bytes());
  const auto weights = weights_in({state->data(), state->size_bytes()});
  REQUIRE(weights.size() == layout.views().size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorView& own = layout.views()[i];
    CHECK(describe(weights[i]) == describe(own));
    CHECK(weights[i].role == own.role);
    CHECK(std::memcmp(weights[i].data, own.data, own.size_bytes()) == 0);
  }
  outer.adopt(layout, *state);
  CHECK(OuterStep(layout, algorithm::noloco()).state_bytes() == outer.state_bytes());
}

TEST_CASE("a description that does not fit its bytes is refused") {
  const std::string good = tensors(tensor("a", "[2,3]", "f32", "0"));
  CHECK(refusal(good).empty());
  CHECK_THAT(refusal(std::vector<std::byte>(7)), ContainsSubstring("no length"));
  CHECK_THAT(refusal(std::vector<std::byte>(100, std::byte{255})), ContainsSubstring("longer"));
  CHECK_THAT(refusal(std::string("{")), ContainsSubstring("cannot be read"));
  CHECK_THAT(refusal(std::string("[]")), ContainsSubstring("cannot be read"));
  CHECK_THAT(refusal(std::string("{}")), ContainsSubstring("cannot be read"));
  for (const auto& [shape, dtype, offset, why] :
       {std::tuple("[17]", "f32", "0", "behind the bytes"),
        std::tuple("[16]", "f32", "4", "behind the bytes"),
        std::tuple("[1]", "f32", "18446744073709551612", "behind the bytes"),
        std::tuple("[4611686018427387904,4]", "f64", "0", "more elements"),
        std::tuple("[4611686018427387904]", "f64", "0", "behind the bytes"),
        std::tuple("[-1]", "f32", "0", "negative side"),
        std::tuple("[1]", "f64", "4", "within an element"),
        std::tuple("[1]", "f128", "0", "\"f128\""), std::tuple("7", "f32", "0", "no list"),
        std::tuple("[1]", "f32", "[]", "no integer"),
        std::tuple("[1e300]", "f32", "0", "no integer"),
        std::tuple("[1]", "f32", "1e300", "no integer"),
        std::tuple("[1]", "f32", "-4", "behind the bytes"),
        std::tuple("[\"x\"]", "f32", "0", "no integer"),
        std::tuple("[1]", "f32", "\"x\"", "no integer")}) {
    CAPTURE(shape, dtype, offset);
    CHECK_THAT(refusal(tensors(tensor("a", shape, dtype, offset))), ContainsSubstring(why));
  }
  const std::string all = tensor("a", "[16]", "f32", "0"), again = tensor("b", "[16]", "f32", "0");
  CHECK_THAT(refusal(tensors(all + "," + again)), ContainsSubstring("more bytes"));
  CHECK_THAT(
      refusal(tensors(tensor("a", "[1]", "f32", "0") + "," + tensor("a", "[1]", "f32", "4"))),
      ContainsSubstring("there twice"));
}

TEST_CASE("a damaged state is refused, or its tensors lie within it") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  Model model;
  const ParameterLayout layout = model.layout();
  const auto state = OuterStep(layout, algorithm::gasloc()).state();
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::byte> bytes(state->data(), state->data() + state->size_bytes());
    for (unsigned int k = 0, count = 1 + random() % 4; k < count; ++k)
      bytes[layout.size_bytes() + random() % (bytes.size() - layout.size_bytes())] =
          static_cast<std::byte>(random());
    try {
      for (const TensorView& view : weights_in(bytes)) {
        const auto* begin = static_cast<const std::byte*>(view.data);
        const bool lies_within =
            begin >= bytes.data() && begin + view.size_bytes() <= bytes.data() + bytes.size();
        REQUIRE(lies_within);
      }
    } catch (const Error&) {  // which says what is wrong
    }
  }
}
