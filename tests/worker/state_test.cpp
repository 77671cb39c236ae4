// A worker that takes up a saved state goes on as the one that was saved would have.
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/rules.hpp"
#include "support/seed.hpp"
#include "worker/quick.hpp"
#include "worker/start/requirements.hpp"

using namespace fast;

namespace {

constexpr int workers = 4;
constexpr std::size_t elements = 700;

/// What a checkpoint would hold of one worker.
struct Saved {
  std::vector<float> x;
  std::vector<std::vector<std::byte>> memory;
  std::vector<TensorView> views;

  void take(const std::vector<TensorView>& state) {
    for (const TensorView& view : state) {
      const auto* bytes = static_cast<const std::byte*>(view.data);
      memory.emplace_back(bytes, bytes + view.size_bytes());
    }
    views = state;
    for (std::size_t k = 0; k < views.size(); ++k) views[k].data = memory[k].data();
  }
};

struct WorkerConfig {
  std::string algorithm;
  std::string codec = "identity";
  std::int64_t staleness = 0;
  algorithm::Parameters parameters{};
  std::optional<TopologyRule> topology{};  ///< empty: that of testing::topology_for()
};

/// Rounds [from, to) of a worker that begins at `begin`, if there is one; saves what it ends with.
Saved run(const Group& group, const WorkerConfig& setting, const Saved* begin, int from, int to) {
  Saved end;
  end.x.assign(elements, static_cast<float>(group.rank()));
  if (begin != nullptr) end.x = begin->x;
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(setting.algorithm, setting.parameters);
  options.codec = codec::by_name(setting.codec);
  options.staleness = setting.staleness;
  Worker worker(group, setting.topology.value_or(testing::topology_for(setting.algorithm)),
                {view_of("x", std::span(end.x))}, options);
  if (begin != nullptr) worker.restore(begin->views);
  testing::expect(worker.round() == from, "the round is not the saved one");
  for (int t = from; t < to; ++t) {
    Rng rng(mix_seed(7, static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(group.rank())));
    worker.step(
        [&] {
          for (float& x : end.x) x -= 0.1F * (x - static_cast<float>(rng.normal()));
        },
        {.learning_rate = 0.1});
  }
  end.take(worker.state());
  worker.await_finish();
  return end;
}

void expect_the_same_rounds(const WorkerConfig& setting) {
  std::vector<Saved> whole(workers), half(workers), resumed(workers);
  const auto each = [&](auto&& part) { local::run(workers, part); };
  each([&](const Group& g) { whole[g.rank()] = run(g, setting, nullptr, 0, 20); });
  each([&](const Group& g) { half[g.rank()] = run(g, setting, nullptr, 0, 9); });
  each([&](const Group& g) { resumed[g.rank()] = run(g, setting, &half[g.rank()], 9, 20); });
  for (std::size_t w = 0; w < workers; ++w) {
    INFO("worker " << w);
    CHECK((whole[w].x == resumed[w].x));
    REQUIRE(whole[w].views.size() == resumed[w].views.size());
    for (std::size_t k = 0; k < whole[w].memory.size(); ++k) {
      INFO(whole[w].views[k].name);
      CHECK((whole[w].memory[k] == resumed[w].memory[k]));
    }
  }
}

/// One or two directed graphs in turn, with any number of edges. Some workers of them may have
/// readers and nobody to read, or the other way round.
Schedule drawn_digraphs(Rng& rng) {
  std::vector<Topology> graphs;
  const auto period = static_cast<std::int64_t>(1 + rng.below(2));
  for (std::int64_t t = 0; t < period; ++t) {
    std::vector<std::vector<int>> in(workers);
    for (int reader = 0; reader < workers; ++reader) {
      for (int source = 0; source < workers; ++source) {
        if (reader != source && rng.below(3) == 0)
          in[static_cast<std::size_t>(reader)].push_back(source);
      }
    }
    graphs.emplace_back("drawn", in);
  }
  return {"drawn", workers, period,
          [=](std::int64_t t) { return graphs[static_cast<std::size_t>(t % period)]; }};
}

bool fits(std::string_view rule, const Schedule& schedule) try {
  fitting_weights(schedule, algorithm::by_name(rule).traits(), WeightRule::automatic, false);
  return true;
} catch (const Error&) {
  return false;
}

}  // namespace

TEST_CASE("a worker goes on from a saved state bit for bit on any directed graphs") {
  const std::uint64_t seed = test_seed(31);
  Rng rng(seed);
  for (int draw = 0; draw < 6; ++draw) {
    const Schedule schedule = drawn_digraphs(rng);
    const TopologyRule topology{"drawn", [&](int) { return schedule; }};
    for (const std::string_view name : algorithm::names()) {
      if (!fits(name, schedule)) continue;
      INFO("FAST_TEST_SEED=" << seed << ", draw " << draw << ", " << name);
      expect_the_same_rounds({std::string(name), "identity", 0, testing::short_of(name), topology});
    }
  }
}

// Its neighbors take what it gives, and nobody gives to it: what it remembers of that decides how
// it goes on.
TEST_CASE("a worker that only gives goes on from a saved state bit for bit") {
  const TopologyRule topology{
      "source", [](int) {
        const Topology graph("source", {{}, {0, 3}, {1}, {2}}, {{}, {0.5, 0.5}, {0.5}, {0.5}},
                             {0.5, 0.5, 0.5, 0.5});  // columns sum to 1
        return Schedule("source", workers, 1, [=](std::int64_t) { return graph; });
      }};
  for (const char* name : {"push_sum", "gradient_tracking"}) {
    INFO(name);
    expect_the_same_rounds({name, "identity", 0, {}, topology});
  }
}

TEST_CASE("a worker goes on from a saved state bit for bit, whatever the rule") {
  for (const std::string_view name : algorithm::names()) {
    INFO(name);
    expect_the_same_rounds({std::string(name), "identity", 0, testing::short_of(name)});
  }
}

TEST_CASE("a worker goes on from a saved state bit for bit, whatever the codec") {
  for (const char* codec : {"bf16", "int8", "bf16_stochastic", "int8_stochastic"}) {
    INFO(codec);
    for (const char* rule : {"awc", "atc", "d2", "gradient_tracking"}) {
      INFO(rule);
      expect_the_same_rounds({rule, codec});
    }
  }
}

TEST_CASE("outer rules go on bit for bit, with codes, parts and delays") {
  using algorithm::Parameters;
  const Parameters changes{{"period", "3"}, {"changes", "true"}};
  const Parameters delayed{{"period", "5"}, {"delay", "2"}, {"blend", "0.5"}};
  for (const char* codec : {"int8", "int4", "int2"}) {
    INFO(codec);
    expect_the_same_rounds({"diloco", codec, 0, changes});
    expect_the_same_rounds({"gasloc", codec, 0, changes});
  }
  expect_the_same_rounds({"noloco", "int8", 0, {{"period", "3"}}});
  expect_the_same_rounds({"diloco", "identity", 0, {{"period", "6"}, {"fragments", "2"}}});
  for (const char* rule : {"diloco", "noloco", "gasloc"}) {
    INFO(rule);
    expect_the_same_rounds({rule, "identity", 0, delayed});
  }
  // Saved between the early message and the combination.
  Parameters delayed_changes = delayed;
  delayed_changes["changes"] = "true";
  expect_the_same_rounds({"noloco", "int8", 0, delayed});
  expect_the_same_rounds({"diloco", "int4", 0, delayed_changes});
  expect_the_same_rounds(
      {"diloco", "identity", 0, {{"period", "10"}, {"fragments", "2"}, {"delay", "2"}}});
  expect_the_same_rounds({"gasloc", "int4", 0, delayed_changes});
  Parameters delayed_few = delayed;
  delayed_few["fraction"] = "0.3";
  for (const char* codec : {"identity", "int8_stochastic", "int4", "int2"}) {
    INFO(codec);
    expect_the_same_rounds({"diloco", codec, 0, {{"period", "3"}, {"fraction", "0.3"}}});
    expect_the_same_rounds({"diloco", codec, 0, delayed_few});
  }
  for (const char* codec : {"bf16", "fp16", "bf16_stochastic"}) {
    INFO(codec);
    expect_the_same_rounds({"sparta", codec, 0, {{"fraction", "0.5"}}});
  }
}

TEST_CASE("a stale worker keeps an outer rule's state") {
  Saved whole, half, resumed;
  const WorkerConfig setting{"gasloc", "identity", 1, testing::short_of("gasloc")};
  local::run(1, [&](const Group& g) { whole = run(g, setting, nullptr, 0, 20); });
  local::run(1, [&](const Group& g) { half = run(g, setting, nullptr, 0, 10); });
  local::run(1, [&](const Group& g) { resumed = run(g, setting, &half, 10, 20); });
  CHECK((whole.x == resumed.x));
}

TEST_CASE("a stale worker begins anew at the saved round") {
  std::vector<Saved> half(workers);
  const WorkerConfig setting{"awc", "identity", 2};
  local::run(workers, [&](const Group& g) { half[g.rank()] = run(g, setting, nullptr, 0, 9); });
  local::run(workers, [&](const Group& g) { run(g, setting, &half[g.rank()], 9, 20); });
}

TEST_CASE("a stale worker of event_triggered begins anew, as its last message is gone") {
  std::vector<Saved> half(workers), resumed(workers);
  const WorkerConfig setting{"event_triggered", "identity", 1};
  local::run(workers, [&](const Group& g) { half[g.rank()] = run(g, setting, nullptr, 0, 9); });
  local::run(workers,
             [&](const Group& g) { resumed[g.rank()] = run(g, setting, &half[g.rank()], 9, 9); });
  for (const Saved& one : resumed) {
    for (const TensorView& view : one.views) {
      if (view.name == "event_triggered.speed") CHECK(*static_cast<const double*>(view.data) == 0);
    }
  }
}

TEST_CASE("a state of another rule is not taken up") {
  std::vector<Saved> half(workers);
  local::run(workers, [&](const Group& g) { half[g.rank()] = run(g, {"awc"}, nullptr, 0, 3); });
  CHECK_THROWS_WITH(
      local::run(workers, [&](const Group& g) { run(g, {"d2"}, &half[g.rank()], 3, 4); }),
      Catch::Contains("mixer.state.0") && Catch::Contains("resume with the options"));
}

TEST_CASE("a worker that has left takes no state") {
  local::run(1, [](const Group& group) {
    std::vector<double> x(3);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))});
    worker.finish();
    CHECK_THROWS_WITH(worker.restore(worker.state()),
                      Catch::Contains("restore() was called after finish()"));
  });
}
