// The worked examples of docs/extending that are part of the library: examples/extending/library
// and a row for each, in copies of the registries.
#include <fast/algorithm/rules.hpp>
#include <fast/codec/codec.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/testing/conformance.hpp>
#include <fast/topology/load.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "backends/registry.hpp"
#include "support/catch.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

/// Values of two workers after one round on a ring that they start with.
std::pair<float, float> after_a_round(float first, float second, const std::string& rule,
                                      const algorithm::Parameters& parameters,
                                      const std::string& codec) {
  float values[2];
  local::run(2, [&](const Group& group) {
    std::vector<float> x(3, group.rank() == 0 ? first : second);
    WorkerOptions options;
    options.initial = Initial::as_is;
    options.algorithm = algorithm::by_name(rule, parameters);
    options.codec = codec::by_name(codec);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    worker.step([] {});
    values[worker.rank()] = x[2];
  });
  return {values[0], values[1]};
}

}  // namespace

TEST_CASE("the rule damped is known by its name and moves a part of the way") {
  CHECK(after_a_round(0, 1, "damped", {{"share", "0.5"}}, "identity") == std::pair(0.25F, 0.75F));
  CHECK(after_a_round(0, 1, "damped", {{"share", "1"}}, "identity") == std::pair(0.5F, 0.5F));
  CHECK_THROWS_WITH(algorithm::by_name("damped", {{"share", "2"}}),
                    Contains("above 0 and at most 1"));
}

TEST_CASE("the codec truncated is known by its name and rounds messages towards zero") {
  // 1 + 2^-7 is the largest value with 8 bits below 1.0117; own weights stay exact
  const auto [first, second] = after_a_round(0, 1.0117F, "awc", {}, "truncated");
  CHECK(first == 0.50390625F);
  CHECK(second == Approx(1.0117F - 0.50390625F).epsilon(1e-6));
}

TEST_CASE("the stencil knight is known by its name, also in a file") {
  const Topology board = topology_by_name("knight").make(25).at(0);
  CHECK(board.in_neighbors(12) == std::vector<int>{1, 3, 5, 9, 15, 19, 21, 23});
  CHECK(board.is_symmetric());
  const TopologyRule file = parse_topology("stencil = \"knight\"", "board.toml");
  CHECK(file.make(25).at(0).in_neighbors(12) == board.in_neighbors(12));
}

TEST_CASE("the backend eigen passes the checks of adapters") {
  const auto report = testing::check_backend([](std::uint64_t seed) {
    return backends::by_name("eigen").make(nn::mlp({16, 32, 4}), seed, {});
  });
  INFO(report.to_text());
  CHECK(report.passed());
}

TEST_CASE("the backend eigen takes the same steps as nn") {
  const auto spec = nn::mlp({6, 5, 3});
  const nn::BackendOptions options{.optimizer =
                                       nn::SgdOptions{.learning_rate = 0.1, .momentum = 0}};
  const auto eigen = backends::by_name("eigen").make(spec, 7, options);
  const auto nn = backends::by_name("nn").make(spec, 7, options);
  eigen->set_learning_rate(0.1);
  const std::vector<float> inputs{1, 0, -1, 2, 0.5F, 0, 0, 1, 1, -2, 0, 3};
  const std::vector<std::int32_t> labels{2, 0};
  for (int step = 0; step < 5; ++step) {
    const Batch batch{inputs, labels, {6}};
    CHECK(eigen->train(batch) == Approx(nn->train(batch)).epsilon(1e-5));
  }
}

TEST_CASE("the backend eigen refuses models that it does not have") {
  CHECK_THROWS_WITH(backends::by_name("eigen").make(nn::lenet5(), 1, {}),
                    Contains("choose --model mlp"));
}
