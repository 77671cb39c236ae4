// Rules with local steps: worked examples, equalities between rules, codes, departures, refusals.
#include <fast/core/error.hpp>
#include <mutex>

#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/rules/outer_run.hpp"
#include "worker/scenarios/outer_scenarios.hpp"

using namespace fast;
using Catch::Matchers::Contains;
using testing::goal_of;
using testing::largest_difference;
using testing::outer_disagreement;
using testing::outer_ends;
using testing::outer_options;
using testing::OuterEnds;
using testing::OuterRun;

namespace {

/// Two replicas of two scalars, 1 at first; the gradient is always 2, the rate 1. What the scalars
/// are after each step.
OuterEnds worked_example(std::int64_t delay, double blend) {
  OuterEnds after;
  algorithm::DilocoOptions diloco{.period = 6, .rate = 2, .momentum = 0, .nesterov = false};
  diloco.fragments = 2;
  diloco.delay = delay;
  diloco.blend = blend;
  local::run(2, [&](const Group& group) {
    std::vector<double> x{1, 1};
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                  outer_options(algorithm::diloco(diloco)));
    for (int t = 0; t < 15; ++t) {
      worker.step([&] {
        for (double& value : x) value -= 2;
      });
      if (group.rank() == 0) after.push_back(x);
    }
  });
  return after;
}

std::vector<double> values_after(const OuterEnds& after, std::size_t fragment,
                                 const std::vector<std::size_t>& steps) {
  std::vector<double> found;
  for (const std::size_t step : steps) found.push_back(after[step - 1][fragment]);
  return found;
}

}  // namespace

TEST_CASE("diloco in fragments, delayed and blended, as in the worked example") {
  struct Example {
    std::int64_t delay;
    double blend;
    std::vector<double> first, second;  ///< after steps 3, 9, 15 and 6, 12
  };
  const Example examples[] = {
      {0, 0, {-11, -35, -59}, {-23, -47}},
      {1, 0, {-7, -27, -47}, {-19, -39}},
      {0, 0.5, {-8, -24.5, -40.25}, {-17, -32}},
      {1, 0.5, {-6, -21.5, -35.75}, {-15, -29}},
  };
  for (const Example& example : examples) {
    INFO("delay " << example.delay << ", blend " << example.blend);
    const OuterEnds after = worked_example(example.delay, example.blend);
    CHECK(values_after(after, 0, {3, 9, 15}) == example.first);
    CHECK(values_after(after, 1, {6, 12}) == example.second);
  }
}

TEST_CASE(
    "gasloc with rate and step 1 is local, and on the complete graph diloco without momentum") {
  for (const TopologyRule& topology : {stencil::ring(), stencil::complete()}) {
    const auto with = [&](const algorithm::Rule& rule) {
      return outer_ends({.workers = 5, .topology = topology, .options = outer_options(rule)});
    };
    const OuterEnds gasloc = with(algorithm::gasloc({.period = 6}));
    CHECK(largest_difference(gasloc, with(algorithm::local({.period = 6}))) < 1e-13);
    const OuterEnds coded = with(algorithm::gasloc({.period = 6, .changes = true}));
    CHECK(largest_difference(gasloc, coded) < 1e-13);
    if (topology.name() != stencil::complete().name()) continue;
    const OuterEnds diloco = with(algorithm::diloco({.period = 6, .rate = 1, .momentum = 0}));
    CHECK(largest_difference(gasloc, diloco) < 1e-13);
  }
}

TEST_CASE("rules with an outer step keep the mean, whatever is combined") {
  for (const int workers : {5, 6, 7}) {
    INFO(workers << " workers");
    CHECK_NOTHROW(local::run(workers, testing::outer_rules_keep_the_mean_whatever_is_combined));
  }
}

TEST_CASE("coded differences come to agreement, however coarse the code") {
  struct Coded {
    const char* codec;
    double step;
    int rounds;
  };
  for (const Coded& coded :
       {Coded{"int8", 1, 200}, Coded{"int4", 0.7, 400}, Coded{"int2", 0.3, 1200}}) {
    INFO(coded.codec);
    OuterRun run{.workers = 8, .topology = stencil::ring(), .rounds = coded.rounds, .rate = 0};
    run.options = outer_options(
        algorithm::gasloc({.period = 1, .consensus_step = coded.step, .changes = true}),
        coded.codec);
    const OuterEnds ends = outer_ends(run);
    CHECK(outer_disagreement(ends, {0, 1, 2, 3, 4, 5, 6, 7}) < 1e-8);
    // The mean stays that of the start.
    double start = 0, end = 0;
    for (int w = 0; w < run.workers; ++w) {
      start += Rng(mix_seed(9, static_cast<std::uint64_t>(w))).normal() / run.workers;
      end += ends[static_cast<std::size_t>(w)][0] / run.workers;
    }
    CHECK(std::abs(start - end) < 1e-6);
  }
}

TEST_CASE("diloco's replicas stay the same, coded too, and come to the mean optimum") {
  double mean = 0;
  for (int w = 0; w < 5; ++w) mean += goal_of(w) / 5;
  for (const char* codec : {"identity", "int8", "int4", "int2"}) {
    INFO(codec);
    const bool coded = codec != std::string_view("identity");
    OuterRun run{.workers = 5, .rounds = 600, .starts_equal = true};
    run.options =
        outer_options(algorithm::diloco({.period = 6, .momentum = 0.5, .changes = coded}), codec);
    const OuterEnds ends = outer_ends(run);
    CHECK(outer_disagreement(ends, {0, 1, 2, 3, 4}) < 1e-13);  // roundings
    // What a code loses is sent later: it does not sum up.
    for (const double x : ends[0]) REQUIRE(std::abs(x - mean) < (coded ? 0.1 : 1e-6));
  }
}

TEST_CASE("when a worker leaves, outer rules go to the optimum of the others") {
  const std::vector<int> others{0, 1, 3, 4};
  double mean = 0;
  for (const int w : others) mean += goal_of(w) / 4;
  struct Case {
    algorithm::Rule rule;
    TopologyRule topology;
    const char* codec;
    double bound;
  };
  const Case cases[] = {
      {algorithm::diloco({.period = 4, .momentum = 0.5}), stencil::complete(), "identity", 1e-3},
      {algorithm::diloco({.period = 4, .momentum = 0.5, .delay = 2}), stencil::complete(),
       "identity", 1e-3},
      {algorithm::gasloc({.period = 4, .acceleration = 0.3}), stencil::complete(), "identity", 0.1},
      {algorithm::gasloc({.period = 4, .consensus_step = 0.7, .changes = true}),
       stencil::complete(), "int4", 0.1},
  };
  for (const Case& each : cases) {
    INFO(each.rule.traits().name << " " << each.rule.traits().parameters);
    OuterRun run{.workers = 5, .topology = each.topology, .rounds = 1200, .leaver = 2};
    run.options = outer_options(each.rule, each.codec);
    const OuterEnds ends = outer_ends(run);
    double found = 0;
    for (const int w : others) found += ends[static_cast<std::size_t>(w)][0] / 4;
    CHECK(std::abs(found - mean) < each.bound);
  }
}

TEST_CASE("after a departure, differences are sent anew and all agree, on a ring, too") {
  const algorithm::Rule rules[] = {
      algorithm::gasloc({.period = 1, .consensus_step = 0.9, .changes = true}),
      algorithm::gasloc({.period = 3, .consensus_step = 0.9, .delay = 1, .changes = true}),
      algorithm::choco({.fraction = 1, .consensus_step = 0.9})};
  for (const algorithm::Rule& rule : rules) {
    INFO(rule.traits().name << " " << rule.traits().parameters);
    OuterRun run{.workers = 7, .topology = stencil::ring(), .rounds = 900, .rate = 0, .leaver = 3};
    run.options = outer_options(rule);
    CHECK(outer_disagreement(outer_ends(run), {0, 1, 2, 4, 5, 6}) < 1e-6);
  }
}

TEST_CASE("diloco's replicas that differ come together") {
  OuterRun run{.workers = 4, .rounds = 400, .rate = 0};
  run.options = outer_options(algorithm::diloco({.period = 4, .momentum = 0.5}));
  CHECK(outer_disagreement(outer_ends(run), {0, 1, 2, 3}) < 1e-12);
}

TEST_CASE("outer rules send a payload in every H-th step") {
  struct Case {
    algorithm::Rule rule;
    const char* codec;
    double bytes;  ///< in 100 steps to one neighbor, of 5120 floats
  };
  const Case cases[] = {
      {algorithm::gasloc({.period = 50}), "identity", 2 * 4 * 5120.0},
      {algorithm::gasloc({.period = 50, .changes = true}), "int4", 2 * (5120 / 2 + 4 * 20 + 8.0)},
      {algorithm::gasloc({.period = 50, .changes = true}), "int2", 2 * (5120 / 4 + 8 * 20 + 8.0)},
      {algorithm::diloco({.period = 50, .fragments = 2}), "identity", 4 * (8 + 4 * 2560.0)},
      {algorithm::diloco({.period = 50, .fraction = 0.01}), "identity", 2 * (8 + 2 * 208.0)},
      // 51 entries: 12 bytes for two chunks and 77 for places, code from 92 on
      {algorithm::diloco({.period = 50, .fraction = 0.01}), "int2", 2 * 120.0},  // 13 + 8 bytes
      {algorithm::diloco({.period = 50, .fraction = 0.01}), "int4", 2 * 128.0},  // 26 + 4
      {algorithm::noloco({.period = 25}), "int8", 4 * (5120 + 4 * 20.0)},
  };
  for (const Case& each : cases) {
    INFO(each.rule.traits().name << " " << each.codec);
    std::vector<double> sent(2);
    local::run(2, [&](const Group& group) {
      std::vector<float> x(5120);
      Worker worker(group, testing::topology_for(each.rule.traits().name),
                    {view_of("x", std::span(x))}, outer_options(each.rule, each.codec));
      for (int t = 0; t < 100; ++t) worker.step([] {});
      sent[static_cast<std::size_t>(group.rank())] = worker.stats().bytes_sent;
    });
    CHECK(sent[0] == each.bytes);
    CHECK(sent[1] == each.bytes);
  }
}

TEST_CASE("awc goes a part of the way, with the learning rate's power") {
  local::run(2, [](const Group& group) {
    testing::Constant c(group, stencil::complete(), group.rank(),
                        outer_options(algorithm::awc({.consensus = 0.5, .power = 2})));
    c.worker.step([] {}, {.learning_rate = 0.2});  // half of the way to 1/2
    testing::expect_near(c.x[0], group.rank() == 0 ? 0.25 : 0.75, "at the largest rate");
    c.worker.step([] {}, {.learning_rate = 0.1});  // an eighth of it
    testing::expect_near(c.x[0], group.rank() == 0 ? 0.28125 : 0.71875, "at half the rate");
    // A spare, and a resumed run, have not made the steps with the largest rate.
    testing::Constant late(group, stencil::complete(), group.rank(),
                           outer_options(algorithm::awc({.consensus = 0.5, .power = 2})));
    late.worker.step([] {}, {.learning_rate = 0.1, .largest_rate = 0.2});
    testing::expect_near(late.x[0], group.rank() == 0 ? 0.0625 : 0.9375, "of a run's later part");
  });
}

TEST_CASE("outer rules say what they do not run with") {
  const auto outer_refusal = [](const TopologyRule& topology, const WorkerOptions& options) {
    std::string said;
    std::mutex mutex;
    local::run(4, [&](const Group& group) {
      try {
        testing::Constant c(group, topology, 0, options);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        if (group.rank() == 0) said = error.what();
      }
    });
    return said;
  };
  using algorithm::by_name;
  CHECK_THAT(outer_refusal(stencil::ring(), outer_options(algorithm::diloco())),
             Contains("needs the topology complete: everybody reads all others"));
  CHECK_THAT(outer_refusal(stencil::ring(), outer_options(algorithm::noloco())),
             Contains("pairs of workers"));
  CHECK_THAT(outer_refusal(stencil::ring(), outer_options(algorithm::gasloc(), "int4")),
             Contains("coded weights do not converge; set changes=true"));
  CHECK_THAT(outer_refusal(stencil::ring(), outer_options(algorithm::awc(), "int2")),
             Contains("codec int2, 2 bits an element; it needs 8 at least, as weights in coarser"));
  CHECK_THAT(outer_refusal(stencil::ring(), outer_options(algorithm::sparta(), "int8")),
             Contains("8 bits an element; it needs 16 at least, as entries that travel alone"));
  CHECK_THAT(
      outer_refusal(schedule::random_matchings(), outer_options(algorithm::noloco(), "int4")),
      Contains("a partner that changes holds nothing"));
  CHECK_THAT(outer_refusal(schedule::one_peer_exponential(),
                           outer_options(algorithm::gasloc({.changes = true}), "int8")),
             Contains("needs a topology that stays"));
  CHECK_THROWS_WITH(by_name("diloco", {{"period", "50"}, {"delay", "50"}}),
                    Contains("delay 50; it must be at least 0 and below 50"));
  CHECK_THROWS_WITH(by_name("diloco", {{"fraction", "0.02"}, {"fragments", "2"}}),
                    Contains("fraction 0.02 with 2 fragments; choose one of both"));
  CHECK_THROWS_WITH(by_name("diloco", {{"fraction", "1.5"}}),
                    Contains("fraction 1.5; it must be at least 0 and at most 1"));
  CHECK_THROWS_WITH(by_name("diloco", {{"period", "50"}, {"fragments", "3"}}),
                    Contains("fragments must be 1 or more and divide the period"));
  CHECK_THROWS_WITH(by_name("gasloc", {{"consensus_step", "0"}}),
                    Contains("above 0 and at most 1"));
  CHECK_THROWS_WITH(by_name("noloco", {{"rate", "0"}}), Contains("rate 0; it must be above 0"));
  CHECK_THROWS_WITH(by_name("sparta", {{"fraction", "2"}}), Contains("above 0 and at most 1"));
  CHECK_THROWS_WITH(by_name("awc", {{"consensus", "1.5"}}), Contains("above 0 and at most 1"));
}

TEST_CASE("where changes travel, the mean model is still that of the weights") {
  for (const auto& rule : {algorithm::gasloc({.period = 2, .changes = true}),
                           algorithm::diloco({.period = 2, .changes = true})}) {
    std::vector<double> ends(3), means(3);
    local::run(3, [&](const Group& group) {
      const auto me = static_cast<std::size_t>(group.rank());
      std::vector<double> x{10};
      Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, outer_options(rule));
      for (int t = 0; t < 5; ++t) worker.step([&] { x[0] -= 0.1 * static_cast<double>(me + 1); });
      worker.await_finish();
      worker.mean_model(std::as_writable_bytes(std::span(&means[me], 1)));
      ends[me] = x[0];
    });
    const double mean = (ends[0] + ends[1] + ends[2]) / 3;
    CHECK(mean < 10);
    for (const double found : means) CHECK(found == Approx(mean).epsilon(1e-14));
  }
}
