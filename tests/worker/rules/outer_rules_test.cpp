// Rules with local steps: worked examples, equalities between rules, codes, departures, refusals.
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <mutex>

#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/constant.hpp"
#include "worker/scenarios/outer_scenarios.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

using OuterEnds = std::vector<std::vector<double>>;

WorkerOptions outer_options(const algorithm::Rule& rule, const char* codec = "identity") {
  WorkerOptions options = testing::quick();
  options.algorithm = rule;
  options.codec = codec::by_name(codec);
  return options;
}

double goal_of(int rank) { return Rng(mix_seed(5, static_cast<std::uint64_t>(rank))).normal(); }

struct OuterRun {
  int workers = 4;
  TopologyRule topology = stencil::complete();
  WorkerOptions options{};
  int rounds = 60;
  double rate = 0.05;
  bool starts_equal = false;
  std::size_t elements = 700;
  int leaver = -1;  ///< leaves half way
};

/// Each worker steps to its goal_of in all elements; returns where they end, by worker.
OuterEnds outer_ends(const OuterRun& run) {
  OuterEnds ends(static_cast<std::size_t>(run.workers));
  local::run(run.workers, [&](const Group& group) {
    const int me = group.rank();
    std::vector<double>& x = ends[static_cast<std::size_t>(me)];
    Rng rng(mix_seed(9, run.starts_equal ? 0 : static_cast<std::uint64_t>(me)));
    for (std::size_t e = 0; e < run.elements; ++e) x.push_back(rng.normal());
    Worker worker(group, run.topology, {view_of("x", std::span(x))}, run.options);
    for (int t = 0; t < run.rounds; ++t) {
      if (me == run.leaver && t == run.rounds / 2 + 2) return worker.leave();
      worker.step([&] {
        for (double& value : x) value -= run.rate * (value - goal_of(me));
      });
    }
  });
  return ends;
}

double largest_difference(const OuterEnds& a, const OuterEnds& b) {
  double most = 0;
  for (std::size_t w = 0; w < a.size(); ++w) {
    for (std::size_t e = 0; e < a[w].size(); ++e)
      most = std::max(most, std::abs(a[w][e] - b[w][e]));
  }
  return most;
}

/// Between workers of the list.
double outer_disagreement(const OuterEnds& ends, const std::vector<int>& workers) {
  double most = 0;
  const std::vector<double>& first = ends[static_cast<std::size_t>(workers.front())];
  for (const int worker : workers) {
    const std::vector<double>& x = ends[static_cast<std::size_t>(worker)];
    for (std::size_t e = 0; e < x.size(); ++e) most = std::max(most, std::abs(x[e] - first[e]));
  }
  return most;
}

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

TEST_CASE("sparta with all entries between plain averages is atc") {
  const auto with = [](const algorithm::Rule& rule) {
    return outer_ends(
        {.workers = 5, .options = outer_options(rule), .rounds = 62, .starts_equal = true});
  };
  const OuterEnds atc = with(algorithm::atc());
  CHECK(largest_difference(atc, with(algorithm::gasloc({.period = 6, .sparta = 1}))) < 1e-12);
  const algorithm::GaslocOptions coded{.period = 6, .changes = true, .sparta = 1};
  CHECK(largest_difference(atc, with(algorithm::gasloc(coded))) < 1e-12);
  const algorithm::DilocoOptions diloco{.period = 6, .rate = 1, .momentum = 0, .sparta = 1};
  CHECK(largest_difference(atc, with(algorithm::diloco(diloco))) < 1e-12);
}

// All curvatures are the same here: the mean of the workers does not depend on what they average.
TEST_CASE("sparta between outer steps leaves the mean alone and brings workers closer together") {
  struct Case {
    algorithm::Rule alone, with_sparta;
    TopologyRule topology;
    const char* codec;
    double bound;
  };
  algorithm::GaslocOptions gasloc{.period = 6, .rate = 0.8, .acceleration = 0.2}, changes = gasloc;
  changes.consensus_step = 0.6;
  changes.changes = true;
  algorithm::DilocoOptions diloco{.period = 6, .momentum = 0.5};
  const auto with = [](auto options) {
    options.sparta = 0.25;
    return options;
  };
  const auto case_of = [&](const auto& rule, const auto& options, const TopologyRule& topology,
                           const char* codec, double bound) {
    return Case{rule(options), rule(with(options)), topology, codec, bound};
  };
  for (const Case& each :
       {case_of(algorithm::gasloc, gasloc, stencil::ring(), "identity", 1e-12),
        case_of(algorithm::gasloc, changes, stencil::ring(), "int4", 1e-9),
        case_of(algorithm::gasloc, changes, stencil::ring(), "fp16", 1e-9),
        case_of(algorithm::diloco, diloco, stencil::complete(), "identity", 1e-12)}) {
    INFO(each.with_sparta.declaration().name << " " << each.codec);
    const auto run = [&](const algorithm::Rule& rule, int rounds) {
      return outer_ends({.workers = 6,
                         .topology = each.topology,
                         .options = outer_options(rule, each.codec),
                         .rounds = rounds,
                         .starts_equal = true});
    };
    const std::vector<int> all{0, 1, 2, 3, 4, 5};
    const auto mean = [](const OuterEnds& ends, std::size_t e) {
      double sum = 0;
      for (const std::vector<double>& x : ends) sum += x[e] / 6;
      return sum;
    };
    // 59 steps: the last one before an outer step.
    const OuterEnds alone = run(each.alone, 59), together = run(each.with_sparta, 59);
    for (std::size_t e = 0; e < 700; ++e)
      REQUIRE(std::abs(mean(alone, e) - mean(together, e)) < each.bound);
    const auto apart = [](const OuterEnds& ends) {
      double sum = 0;
      for (std::size_t e = 0; e < 700; ++e) sum += std::abs(ends[0][e] - ends[3][e]);
      return sum;
    };
    CHECK(apart(together) < 0.8 * apart(alone));
    double goal = 0;
    for (int w = 0; w < 6; ++w) goal += goal_of(w) / 6;
    const OuterEnds ends = run(each.with_sparta, 1199);
    for (std::size_t e = 0; e < 700; ++e) REQUIRE(std::abs(mean(ends, e) - goal) < 1e-6);
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
      {algorithm::gasloc({.period = 4, .sparta = 0.2}), stencil::complete(), "identity", 0.1},
      {algorithm::gasloc({.period = 4, .consensus_step = 0.7, .changes = true, .sparta = 0.2}),
       stencil::complete(), "int4", 0.1},
      {algorithm::diloco({.period = 4, .momentum = 0.5, .sparta = 0.2}), stencil::complete(),
       "identity", 1e-3},
  };
  for (const Case& each : cases) {
    INFO(each.rule.declaration().name << " " << each.rule.declaration().parameters);
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
      algorithm::gasloc({.period = 3, .consensus_step = 0.9, .changes = true, .sparta = 0.2}),
      algorithm::choco({.fraction = 1, .consensus_step = 0.9})};
  for (const algorithm::Rule& rule : rules) {
    INFO(rule.declaration().name << " " << rule.declaration().parameters);
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

TEST_CASE("sparta averages one entry of each run, and all entries in time") {
  constexpr std::size_t run_length = 8, elements = 3001;
  local::run(3, [&](const Group& group) {
    std::vector<float> x(elements, static_cast<float>(group.rank()));
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                  outer_options(algorithm::sparta({.fraction = 1.0 / run_length, .seed = 4})));
    worker.step([] {});
    std::size_t averaged = 0;
    for (std::size_t r = 0; r * run_length < elements; ++r) {
      const std::size_t begin = r * run_length, end = std::min(begin + run_length, elements);
      const auto at_mean = std::count_if(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                         x.begin() + static_cast<std::ptrdiff_t>(end),
                                         [](float value) { return std::abs(value - 1) < 1e-6F; });
      averaged += static_cast<std::size_t>(at_mean);
      // Worker 1 stands at the mean.
      if (group.rank() != 1) testing::expect(at_mean == 1, fmt::format("run {}: {}", r, at_mean));
    }
    if (group.rank() != 1) testing::expect(averaged == 376, "entries averaged");
    testing::expect(worker.stats().bytes_sent == 2.0 * (8 + 4 * 376), "bytes of a round");
    for (int t = 0; t < 200; ++t) worker.step([] {});
    for (const float value : x) testing::expect(std::abs(value - 1) < 1e-6F, "all at the mean");
  });
}

// Entries that travel are rounded, and so is what the pull is taken from: a worker's own entry is
// not. 1 + r/512 lies between values of bf16, which are 1/128 apart.
TEST_CASE("sparta in 16 bits adds the difference of rounded entries to the exact one") {
  constexpr std::size_t elements = 4000;
  for (const char* codec : {"bf16", "fp16", "bf16_stochastic"}) {
    std::vector<std::vector<double>> ends(3);
    local::run(3, [&](const Group& group) {
      std::vector<double> x(elements, 1 + group.rank() / 512.0);
      Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                    outer_options(algorithm::sparta({.fraction = 1.0 / 8, .seed = 4}), codec));
      for (int t = 0; t < 200; ++t) worker.step([] {});
      testing::expect(worker.stats().bytes_sent == 200.0 * 2 * (8 + 2 * 500), "bytes");
      ends[static_cast<std::size_t>(group.rank())] = x;
    });
    const bool bf16 = codec == std::string_view("bf16");
    for (std::size_t e = 0; e < elements; ++e) {
      const double mean = (ends[0][e] + ends[1][e] + ends[2][e]) / 3;
      REQUIRE(std::abs(mean - (1 + 1 / 512.0)) < 1e-14);
      // bf16: all three round to 1, and nobody moves. fp16 has all three values: 1/1024 apart.
      if (bf16) REQUIRE(ends[0][e] == 1);
      if (bf16) REQUIRE(ends[2][e] == 1 + 2 / 512.0);
    }
    if (codec == std::string_view("fp16")) CHECK(outer_disagreement(ends, {0, 1, 2}) < 2e-3);
  }
}

TEST_CASE("sparta at staleness 3 takes the entries of the message that it reads") {
  local::run(4, [&](const Group& group) {
    std::vector<double> x;
    for (int e = 0; e < 500; ++e) x.push_back(group.rank() + 10 * e);
    WorkerOptions options = outer_options(algorithm::sparta({.fraction = 0.1}));
    options.staleness = 3;
    Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < 3000; ++t) worker.step([] {});
    worker.await_finish();
    for (int e = 0; e < 500; ++e) {  // else an entry was taken for another
      const double value = x[static_cast<std::size_t>(e)] - 10 * e;
      testing::expect(value >= 0 && value <= 3, "between all starts");
    }
    testing::expect(worker.consensus_distance() < 0.5, "they agree");
  });
}

// 5120 floats, of each 64 one: 80 entries, and the number of the combination. With `changes`, a
// number of 8 bytes is sent with each message.
TEST_CASE("with sparta, the message of a round between outer steps is a part") {
  struct Case {
    algorithm::Rule rule;
    const char* codec;
    double outer, between;  ///< bytes of a round
  };
  const algorithm::GaslocOptions plain{.period = 4, .sparta = 1.0 / 64};
  algorithm::GaslocOptions changes = plain;
  changes.changes = true;
  const double entries = 8 + 4 * 80, halves = 8 + 2 * 80;
  const Case cases[] = {
      {algorithm::gasloc(plain), "identity", 4 * 5120.0, entries},
      {algorithm::gasloc(changes), "int4", 5120 / 2 + 4 * 20 + 8.0, entries + 8},
      {algorithm::gasloc(changes), "int2", 5120 / 4 + 8 * 20 + 8.0, entries + 8},
      {algorithm::gasloc(changes), "bf16", 2 * 5120 + 8.0, halves + 8},
      {algorithm::diloco({.period = 4, .sparta = 1.0 / 64}), "identity", 4 * 5120.0, entries},
  };
  for (const Case& each : cases) {
    INFO(each.rule.declaration().name << " " << each.codec);
    std::vector<double> sent;
    local::run(2, [&](const Group& group) {
      std::vector<float> x(5120);
      Worker worker(group, testing::topology_for(each.rule.declaration().name),
                    {view_of("x", std::span(x))}, outer_options(each.rule, each.codec));
      for (int t = 0; t < 12; ++t) {
        const double before = worker.stats().bytes_sent;
        worker.step([] {});
        if (group.rank() == 0) sent.push_back(worker.stats().bytes_sent - before);
      }
    });
    for (std::size_t t = 0; t < sent.size(); ++t)
      CHECK(sent[t] == (t % 4 == 3 ? each.outer : each.between));
  }
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
    INFO(each.rule.declaration().name << " " << each.codec);
    std::vector<double> sent(2);
    local::run(2, [&](const Group& group) {
      std::vector<float> x(5120);
      Worker worker(group, testing::topology_for(each.rule.declaration().name),
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
  // Together with sparta.
  for (const char* rule : {"gasloc", "diloco"}) {
    INFO(rule);
    CHECK_THROWS_WITH(by_name(rule, {{"sparta", "1.5"}}),
                      Contains("sparta 1.5; it must be at least 0 and at most 1"));
    CHECK_THROWS_WITH(by_name(rule, {{"sparta", "0.1"}, {"period", "1"}}),
                      Contains("no rounds between two outer steps"));
    CHECK_THROWS_WITH(by_name(rule, {{"sparta", "0.1"}, {"delay", "2"}}),
                      Contains("sparta 0.1 with delay 2; a message of sparta would replace"));
    WorkerOptions options = outer_options(by_name(rule, {{"sparta", "0.1"}}));
    options.staleness = 1;
    CHECK_THAT(outer_refusal(testing::topology_for(rule), options),
               Contains("runs at staleness 0 only, as workers of different rounds"));
  }
  CHECK_THROWS_WITH(by_name("diloco", {{"sparta", "0.1"}, {"fragments", "2"}}),
                    Contains("2 fragments and fraction 0; these send parts in the outer step"));
  CHECK_THROWS_WITH(by_name("diloco", {{"sparta", "0.1"}, {"fraction", "0.1"}}),
                    Contains("choose one of the three"));
}
