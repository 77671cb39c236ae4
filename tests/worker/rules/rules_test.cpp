#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"
#include "worker/scenarios/rule_scenarios.hpp"
#include "worker/start/requirements.hpp"

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

namespace {

Deadline no_limit_of_rules() { return Deadline(Seconds(60)); }

/// The largest magnitude of X in the last of many rounds, along an eigenvector of W with that
/// eigenvalue, without steps.
double left_along(double eigenvalue, const algorithm::GutOptions& options) {
  const auto rule = algorithm::gut(options).make();
  double x = 1, states[3] = {}, payload = 0, pull = 0;
  algorithm::Block<double> block;
  block.count = 1;
  block.current = &x;
  block.payload[0] = &payload;
  block.pull[0] = &pull;
  for (int s = 0; s < 3; ++s) block.state[s] = &states[s];
  rule->apply(algorithm::Sweep::start, block);
  for (int round = 0; round < 20'000 && std::abs(x) < 1e9; ++round) {
    rule->apply(algorithm::Sweep::publish, block);
    pull = (eigenvalue - 1) * payload;
    rule->apply(algorithm::Sweep::combine, block);
  }
  return std::abs(payload);
}

}  // namespace

TEST_CASE("gut keeps differences along eigenvalues that its bound excludes, and no others") {
  for (const auto& [beta, mu] : std::vector<std::pair<double, double>>{
           {0, 0.1}, {0, 0.9}, {0.05, 0.9}, {0.1, 0.8}, {0.2, 0.7}, {0.3, 0.6}, {0.9, 0.06}}) {
    INFO("momentum " << beta << ", mu " << mu);
    const algorithm::GutOptions options{.momentum = beta, .mu = mu};
    const double bound = -(1 + 2 * beta + mu * beta) / (1 + 2 * mu - mu * beta);
    CHECK(left_along(bound + 0.01, options) < 1e-6);
    CHECK(left_along(bound - 0.01, options) > 1e6);
    CHECK(left_along(0.99, options) < 1e-6);
    const algorithm::TopologyNeeds needs = algorithm::gut(options).traits().topology;
    const bool any = bound < -1;
    CHECK(needs.mixing ==
          (any ? algorithm::MixingRequirement::symmetric : algorithm::MixingRequirement::positive));
    if (!any) CHECK(needs.eigenvalues_above == Approx(bound).epsilon(1e-14));
  }
}

TEST_CASE("gut gets lazy weights only where momentum leaves differences") {
  // The smallest eigenvalue is -0.6.
  const Schedule torus = stencil::torus2d().make(16);
  const auto is_lazy = [&](double beta, double mu) {
    return fitting_weights(torus, algorithm::gut({.momentum = beta, .mu = mu}).traits(),
                           WeightRule::automatic, false)
        .lazy;
  };
  CHECK(is_lazy(0, 0.9));
  CHECK(is_lazy(0.1, 0.8));
  CHECK_FALSE(is_lazy(0.2, 0.7));
  CHECK_FALSE(is_lazy(0.9, 0.06));
  CHECK_FALSE(is_lazy(0, 0.3));
}

// All step by 1 in the first round, then no more. With s = momentum + mu, the step in round n after
// that is momentum s^(n-1).
TEST_CASE("what gut publishes has the weights' mean while momentum moves them") {
  constexpr int workers = 4, rounds = 12, bad_round = 4;
  constexpr double beta = 0.6, mu = 0.3;
  local::run(workers, [](const Group& group) {
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::gut({.momentum = beta, .mu = mu});
    options.not_finite = NotFinite::heal;
    std::vector<double> x(3, 0.0), mean(3);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    double expected = 1;
    for (int t = 0; t < rounds; ++t) {
      worker.step([&] {
        if (t == 0) x.assign(3, 1.0);
        if (t == bad_round && group.rank() == 1) x[1] = std::numeric_limits<double>::quiet_NaN();
      });
      if (t > 0) expected += beta * std::pow(beta + mu, t - 1);
      group.barrier(no_limit_of_rules(), "all have published");
      worker.mean_model({view_of("x", std::span(mean))});
      for (std::size_t e = 0; e < 3; ++e) {
        testing::expect(std::abs(x[e] - expected) < 1e-13,
                        fmt::format("{} in round {}, not {}", x[e], t, expected));
        testing::expect(std::abs(mean[e] - expected) < 1e-13,
                        fmt::format("the mean model is {} in round {}", mean[e], t));
      }
      group.barrier(no_limit_of_rules(), "all have looked");
    }
    testing::expect(worker.stats().healed == (group.rank() == 1 ? 1 : 0), "one worker has healed");
  });
}

TEST_CASE("the mean model is that of the weights for workers of gut that are apart") {
  constexpr int workers = 5;
  std::vector<double> all(workers);
  local::run(workers, [&](const Group& group) {
    const auto me = static_cast<std::size_t>(group.rank());
    WorkerOptions options = testing::quick();
    options.algorithm = algorithm::gut({.momentum = 0.6, .mu = 0.3});
    std::vector<double> x{static_cast<double>(me * me)}, mean(1);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < 30; ++t) {
      worker.step([&] { x[0] += 0.05 * (10.0 - 3.0 * static_cast<double>(me) - x[0]); });
      all[me] = x[0];
      group.barrier(no_limit_of_rules(), "all have published");
      worker.mean_model({view_of("x", std::span(mean))});
      const double expected = std::accumulate(all.begin(), all.end(), 0.0) / workers;
      testing::expect(std::abs(mean[0] - expected) < 1e-12,
                      fmt::format("{} in round {}, not {}", mean[0], t, expected));
      group.barrier(no_limit_of_rules(), "all have looked");
    }
  });
}

TEST_CASE("a2cid2 with adaptive rates is refused at once where there are too many workers") {
  const auto check = [](int workers, const algorithm::A2cid2Options& options) {
    static_cast<void>(fitting_weights(schedule::alternating_pairs().make(workers),
                                      algorithm::a2cid2(options).traits(), WeightRule::automatic,
                                      false));
  };
  CHECK_NOTHROW(check(1024, {}));
  CHECK_THROWS_WITH(check(1026, {}),
                    Contains("algorithm a2cid2 for 1026 workers") && Contains("mixing_rate"));
  CHECK_NOTHROW(check(1026, {.mixing_rate = 0.1, .second_step = 0.6}));
}
