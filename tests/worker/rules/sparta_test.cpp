// sparta alone, and between the outer steps of another rule.
#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using testing::goal_of;
using testing::largest_difference;
using testing::outer_disagreement;
using testing::outer_ends;
using testing::outer_options;
using testing::OuterEnds;
using testing::OuterRun;

namespace {

/// What it publishes at the end of a round is for the next one, whose message has another length.
struct PartsBeforeTheStep {
  algorithm::Declaration declare() const {
    return {.name = "parts_before_the_step",
            .summary = "x",
            .source = "x",
            .publishes_weights_apart = true,
            .selection = {algorithm::Selection::Kind::one_of_each_run, 4, 1, 3}};
  }
  template <class T>
  void publish(const algorithm::Block<T>&) const {}
  template <class T>
  void combine(const algorithm::Block<T>&) const {}
};

}  // namespace

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

TEST_CASE("a rule whose messages have two lengths publishes after the step") {
  std::vector<float> x(8);
  const auto start = [&](const Group& group) {
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))},
                  outer_options(algorithm::elementwise(PartsBeforeTheStep{})));
  };
  CHECK_THROWS_WITH(local::run(1, start), ContainsSubstring("must publish after the step"));
}
