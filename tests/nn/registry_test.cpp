// What holds for every layer of the library.
#include <fstream>
#include <set>
#include <sstream>

#include "nn/layer_examples.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/probe.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(std::string(FAST_SOURCE_DIR "/") + path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the page on new layers shows the files of its example as they are") {
  const std::string page = text_of("docs/extending/layer.md");
  for (const char* path : {"lib/nn/layers/silu.hpp", "lib/nn/layers/silu.cpp"}) {
    INFO(path);
    REQUIRE_FALSE(text_of(path).empty());
    CHECK_THAT(page, ContainsSubstring("```cpp\n" + text_of(path) + "```"));
  }
  CHECK_THAT(text_of("include/fast/nn/model_spec.hpp"), ContainsSubstring("\nstruct Silu {};\n"));
}

TEST_CASE("every layer has a row of its own and an example in the tests") {
  std::set<std::size_t> kinds;
  for (const LayerExample& example : layer_examples()) {
    INFO(describe(example.layer));
    CHECK(entry_of(example.layer).kind == example.layer.index());
    kinds.insert(example.layer.index());
  }
  CHECK(kinds.size() == std::variant_size_v<LayerSpec::variant>);
}

TEST_CASE("the gradients of every layer are those of finite differences") {
  for (const LayerExample& example : layer_examples())
    for (const Index count : {1, 3, 9}) check_gradients(example.layer, example.input, count);
}

TEST_CASE("an elementwise layer gives what its formula says") {
  Rng rng(12);
  for (const LayerExample& example : layer_examples()) {
    if (example.formula == nullptr) continue;
    Probe probe(example.layer, example.input, 3);
    Values x = random_values(probe.inputs(), rng);
    for (double& value : x) value *= 8;
    Values expected;
    for (const double value : x) expected.push_back(example.formula(value));
    INFO(describe(example.layer) << ", seed 12");
    check_close(probe.forward({}, x), expected);
  }
}
