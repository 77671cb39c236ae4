#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>
#include <stdexcept>

#include "support/catch.hpp"
#include "worker/scenarios/rule_scenarios.hpp"

using namespace fast;
using Catch::Matchers::Contains;

TEST_CASE("one-peer exponential averages are exact on 8 and 16 workers") {
  for (const int workers : {8, 16}) {
    CHECK_NOTHROW(local::run(workers, testing::one_peer_exponential_averages_exactly));
  }
}

namespace {

/// The worked example of docs/extending/algorithm.md.
struct Damped {
  double share = 0.5;
  std::int64_t average_every = 0;

  algorithm::RuleTraits traits() const {
    return {.name = "damped",
            .summary = "x_i + δ_i + a Σ_j W_ij (x_j - x_i)",
            .source = "-",
            .timing = {.average_every = average_every},
            .parameters = fmt::format("share={}", share)};
  }
  template <class T>
  void publish(const algorithm::Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const algorithm::Block<T>& block) {
    const T part = static_cast<T>(share);
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += part * block.pull[0][e];
  }
};

}  // namespace

TEST_CASE("a rule of one's own runs without being registered") {
  local::run(2, [](const Group& group) {
    std::vector<float> x(3, static_cast<float>(group.rank()));
    WorkerOptions options;
    options.initial = Initial::as_is;
    options.algorithm = algorithm::elementwise(Damped{0.5});
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    worker.step([] {});
    if (x[2] != (group.rank() == 0 ? 0.25F : 0.75F)) throw std::runtime_error("not half-way");
  });
}

TEST_CASE("a rule of one's own averages over all workers as often as it declares") {
  for (const std::int64_t staleness : {0, 2}) {
    local::run(4, [&](const Group& group) {
      std::vector<double> x(3, group.rank());
      WorkerOptions options;
      options.initial = Initial::as_is;
      options.staleness = staleness;
      options.deadline = Seconds(30);
      options.algorithm = algorithm::elementwise(Damped{0.5, 3});
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      for (int round = 1; round <= 12; ++round) {
        worker.step([&] { x[0] += 1; });
        // The mean of 0, 1, 2 and 3, moved by the steps that all have made.
        if (staleness == 0 && round % 3 == 0 && std::abs(x[0] - (1.5 + round)) > 1e-12)
          throw std::runtime_error(fmt::format("{} in round {}", x[0], round));
      }
    });
  }
}

TEST_CASE("options that differ between workers are refused") {
  CHECK_THROWS_WITH(local::run(2,
                               [](const Group& group) {
                                 std::vector<float> x(3);
                                 WorkerOptions options;
                                 options.algorithm = algorithm::local({.period = 2 + group.rank()});
                                 Worker worker(group, stencil::ring(), {view_of("x", std::span(x))},
                                               options);
                               }),
                    Contains("algorithm local period=2, worker 1 has algorithm local period=3"));
}

TEST_CASE("every rule is made by its name and says where it comes from") {
  CHECK(algorithm::names().size() >= 20);
  for (const auto name : algorithm::names()) {
    const auto rule = algorithm::by_name(name);
    CHECK(rule.traits().name == name);
    CHECK_FALSE(rule.traits().summary.empty());
    CHECK_FALSE(rule.traits().source.empty());
  }
}

TEST_CASE("a rule's options come by name and refuse what they do not know") {
  using algorithm::by_name;
  CHECK(by_name("local", {{"period", "7"}}).traits().timing.combine_every == 7);
  CHECK(by_name("d2", {{"strict", "true"}}).traits().topology.strict);
  CHECK(by_name("event_triggered", {{"threshold", "adaptive"}}).traits().parameters ==
        "threshold=adaptive horizon=3");
  CHECK_THROWS_WITH(by_name("choco", {{"topk", "3"}}),
                    Contains("\"topk\" is unknown; choose from top_k, fraction, consensus_step"));
  CHECK_THROWS_WITH(by_name("atc", {{"period", "3"}}), Contains("the rule has none"));
  CHECK_THROWS_WITH(by_name("local", {{"period", "many"}}), Contains("period=many; a number"));
  CHECK_THROWS_WITH(by_name("local", {{"period", "0"}}),
                    Contains("period 0; it must be 1 or more"));
  CHECK(by_name("a2cid2", {{"mixing_rate", "0.2"}}).traits().parameters ==
        "mixing_rate=0.2 second_step=adaptive");
  CHECK_FALSE(by_name("a2cid2", {{"mixing_rate", "0.2"}, {"second_step", "0.9"}})
                  .traits()
                  .topology.needs_meetings);
  CHECK_THROWS_WITH(by_name("gut", {{"mu", "0.2"}}), Contains("their sum must be below 1"));
  CHECK_THROWS_WITH(by_name("a2cid2", {{"second_step", "0"}}), Contains("must be above 0"));
  CHECK_THROWS_WITH(by_name("awk"), Contains("choose one of none, awc, atc"));
}

TEST_CASE("assignments become parameters") {
  CHECK(algorithm::parameters_from({"a=1", "b=x=y"}) ==
        algorithm::Parameters{{"a", "1"}, {"b", "x=y"}});
  CHECK_THROWS_WITH(algorithm::parameters_from({"a"}), Contains("KEY=VALUE"));
  CHECK_THROWS_WITH(algorithm::parameters_from({"a=1", "a=2"}), Contains("given twice"));
}
