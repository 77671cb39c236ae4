#include "worker/scenarios/rule_scenarios.hpp"

#include <algorithm>
#include <chrono>
#include <fast/core/random.hpp>
#include <fast/mixing/weights.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <thread>

#include "support/rules.hpp"
#include "worker/constant.hpp"

namespace fast::testing {
namespace {

using algorithm::Rule;

WorkerOptions with(Rule rule) {
  WorkerOptions options = quick();
  options.algorithm = std::move(rule);
  return options;
}

/// Passes everything on and remembers the scalars sent.
struct Recording : algorithm::Algorithm {
  explicit Recording(const Rule& rule) : inner(rule.make()) {}
  const algorithm::RuleTraits& traits() const override { return inner->traits(); }
  void apply(algorithm::Sweep sweep, const algorithm::AnyBlock& block) override {
    inner->apply(sweep, block);
  }
  bool begin_publish(const algorithm::RoundInfo& info, std::span<double> scalars) override {
    const bool sends = inner->begin_publish(info, scalars);
    sent.assign(scalars.begin(), scalars.end());
    return sends;
  }
  void begin_combine(const algorithm::RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) override {
    inner->begin_combine(info, own, pull);
  }
  std::shared_ptr<Algorithm> inner;
  std::vector<double> sent;
};

double sum_over(const Group& group, double value) {
  const auto all =
      group.all_gather(std::string(reinterpret_cast<const char*>(&value), sizeof value),
                       Deadline(Seconds(20)), "summing up");
  double sum = 0;
  for (const std::string& bytes : all) sum += *reinterpret_cast<const double*>(bytes.data());
  return sum;
}

void expect_refusal(const Group& group, const TopologyRule& topology, WorkerOptions options,
                    const std::string& reason) {
  const std::string rule(options.algorithm.traits().name);
  try {
    const Constant c(group, topology, 0, std::move(options));
  } catch (const Error& error) {
    expect(error.everywhere(), rule + ": refused on every worker alike");
    expect(std::string(error.what()).find(reason) != std::string::npos,
           fmt::format("{}: the reason \"{}\" is in: {}", rule, reason, error.what()));
    return;
  }
  expect(false, rule + " was not refused");
}

/// Out-edges 0→1,2,3; 1→2; 2→3; 3→0.
Topology digraph() { return {"digraph", std::vector<std::vector<int>>{{3}, {0}, {0, 1}, {0, 2}}}; }

/// Pairs 0-1, 2-3, ... and, in the other rounds, 1-2, 3-4, ..., around the ring.
Schedule matchings(int workers) {
  std::vector<Topology> rounds;
  for (int odd = 0; odd < 2; ++odd) {
    std::vector<std::vector<int>> in(static_cast<std::size_t>(workers));
    for (int w = odd; w + 1 < workers + odd; w += 2) {
      const int a = w % workers, b = (w + 1) % workers;
      in[static_cast<std::size_t>(a)] = {b};
      in[static_cast<std::size_t>(b)] = {a};
    }
    rounds.emplace_back("pairs", in);
  }
  return {"matchings", rounds};
}

}  // namespace

void push_sum_keeps_the_mass(const Group& group) {
  if (group.size() != 4) return;
  std::shared_ptr<Recording> rule;  // the worker's, made last
  Constant c(group, digraph(), group.rank(),
             with(Rule([&] { return rule = std::make_shared<Recording>(algorithm::push_sum()); })));
  for (int t = 0; t < 80; ++t) {
    c.idle(1);
    expect_near(sum_over(group, rule->sent.at(0)), 4, fmt::format("mass in round {}", t), 1e-13);
  }
  expect_near(c.x[4], 1.5, "push-sum finds the mean", 1e-12);
}

void push_sum_finds_the_mean_whatever_is_read_late(const Group& group) {
  if (group.size() != 4) return;
  WorkerOptions options = with(algorithm::push_sum());
  options.staleness = 3;
  Constant c(group, digraph(), group.rank(), options);
  Rng rng(17 + static_cast<std::uint64_t>(group.rank()));
  for (int t = 0; t < 400; ++t) {
    if (rng.below(4) == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(300)));
    c.idle(1);
  }
  expect_near(c.x[4], 1.5, "push-sum finds the mean", 1e-9);
}

void one_peer_exponential_averages_exactly(const Group& group) {
  const int n = group.size();
  if ((n & (n - 1)) != 0) return;
  Constant c(group, schedule::one_peer_exponential(), group.rank(), with(algorithm::awc()));
  c.idle(std::max(1, static_cast<int>(std::lround(std::log2(n)))));
  expect(c.x[0] == (n - 1) / 2.0, fmt::format("the mean is exact, {}", c.x[0]));
}

void misfits_are_refused_everywhere(const Group& group) {
  const int n = group.size();
  for (const char* name : {"d2", "edm", "gut", "choco", "pairwise", "a2cid2"}) {
    WorkerOptions options = with(algorithm::by_name(name));
    options.staleness = 1;
    expect_refusal(group, stencil::ring(), options, "staleness 0 only");
  }
  if (n < 3) return;
  const auto one_peer = schedule::one_peer_exponential();
  expect_refusal(group, one_peer, with(algorithm::choco()), "needs a topology that stays");
  for (const char* name : {"gradient_tracking", "push_sum"}) {
    WorkerOptions options = with(algorithm::by_name(name));
    options.staleness = 1;
    expect_refusal(group, one_peer, options, "running sums need edges that stay");
  }
  expect_refusal(group, stencil::ring(true), with(algorithm::decentlam()), "symmetric weights");
  expect_refusal(group, stencil::ring(true), with(algorithm::d2()), "symmetric weights");
  expect_refusal(group, stencil::ring(), with(algorithm::pairwise()), "pairs of workers");
  expect_refusal(group, stencil::ring(), with(algorithm::relay_sum()),
                 "it needs a tree, whose edges go both ways and close no cycle: grid1d");
  std::vector<std::vector<int>> chain(static_cast<std::size_t>(n));
  std::vector<std::vector<double>> halves(chain.size());
  for (int w = 1; w < n; ++w) {
    chain[static_cast<std::size_t>(w)] = {w - 1};
    halves[static_cast<std::size_t>(w)] = {0.5};
  }
  const Topology rows("half a chain", chain, halves);
  expect_refusal(group, rows, with(algorithm::push_sum()), "columns all sum to 1");
  if (n % 2 == 0) {
    expect_refusal(group, stencil::ring(), with(algorithm::d2({.strict = true})),
                   "the smallest eigenvalue of the weights is -0.3333333333333, it must exceed "
                   "-1/3 by more than 1e-09");
  }
}

void a_missing_learning_rate_is_refused(const Group& group) {
  for (const char* name : {"quasi_global_momentum", "decentlam"}) {
    Constant c(group, stencil::ring(), 1, with(algorithm::by_name(name)));
    std::string text;
    try {
      c.worker.step([] {});
    } catch (const Error& error) {
      text = error.what();
    }
    const bool asks = text.find(fmt::format("algorithm {} divides by the learning rate, which is 0 "
                                            "in round 0; give each round its rate",
                                            name)) != std::string::npos;
    expect(asks || text.find("failed") != std::string::npos,
           fmt::format("{} asks for the rate: {}", name, text));
  }
}

void d2_takes_lazy_weights_where_it_must(const Group& group) {
  const int n = group.size();
  if (n < 4 || n % 2 != 0) return;
  WorkerOptions options = with(algorithm::d2());
  int lines = 0;
  options.log = [&](LogLevel, std::string_view text) {
    if (text.find("lazy weights") != std::string_view::npos) ++lines;
  };
  Constant c(group, stencil::ring(), group.rank(), options);
  c.idle(1);
  const int r = group.rank();
  const double neighbors = (r + 1) % n + (r + n - 1) % n;
  expect_near(c.x[0], r * 2 / 3.0 + neighbors / 6, "lazy weights", 1e-14);
  expect(lines == (r == 0 ? 1 : 0), "worker 0 alone logs one line");
  expect(c.worker.stats().lazy_weights, "the statistics say so");
  Constant other(group, stencil::ring(), r, with(algorithm::by_name("awc")));
  expect(!other.worker.stats().lazy_weights, "other rules take the weights as they are");
}

void a_worker_that_does_not_move_does_not_send(const Group& group) {
  Constant c(group, stencil::ring(true), group.rank(),
             with(algorithm::event_triggered({.threshold = 1e6})));
  c.idle(10);
  const WorkerStats stats = c.worker.stats();
  const int readers = group.size() > 1 ? 1 : 0;
  expect(stats.messages_sent == readers && stats.messages_held == 9 * readers,
         fmt::format("{} sent, {} held", stats.messages_sent, stats.messages_held));
  // x ← (x + what the left one first sent)/2
  const int left = (group.rank() + group.size() - 1) % group.size();
  const double expected = left + (group.rank() - left) * std::pow(2.0, -10);
  if (readers > 0) expect_near(c.x[0], expected, "the first message stays in force", 1e-13);
}

void held_messages_stay_in_force_for_slow_readers(const Group& group) {
  const auto train = [&](bool slow) {
    Constant c(group, stencil::ring(true), group.rank(),
               with(algorithm::event_triggered({.threshold = 0.3})));
    Rng rng(3);
    for (int t = 0; t < 60; ++t) {
      c.worker.step([&] {
        if (slow && group.rank() == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(rng.below(2000)));
        }
        for (double& x : c.x) x -= 0.1 * (x - group.rank() * std::sin(t / 5.0));
      });
    }
    return c.x[0];
  };
  expect(train(true) == train(false), "a slow reader reads the same messages");
}

void gossip_pga_averages_all(const Group& group) {
  for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{2}}) {
    WorkerOptions options = with(algorithm::gossip_pga({.period = 3}));
    options.staleness = staleness;
    Constant c(group, stencil::ring(), group.rank(), options);
    c.idle(3);
    const double mean = (group.size() - 1) / 2.0;
    if (staleness == 0) expect_near(c.x[1], mean, "mean of all", 1e-14);
    expect_near(sum_over(group, c.x[1]), group.size() * c.x[1], "all are equal", 1e-14);
    c.idle(4);
  }
}

void pairs_average_and_keep_the_mean(const Group& group) {
  const int n = group.size();
  if (n % 2 != 0) return;
  const TopologyRule pairs("matchings", [](int workers) { return matchings(workers); });
  Constant c(group, pairs, group.rank(), with(algorithm::pairwise()));
  c.idle(1);
  const int partner = group.rank() ^ 1;
  expect(c.x[0] == (group.rank() + partner) / 2.0, "the average of two");
  c.idle(300);
  expect_near(c.x[0], (n - 1) / 2.0, "the mean of all", 1e-10);
}

void gradient_exchange_adds_the_neighbors_steps(const Group& group) {
  const int n = group.size(), left = (group.rank() + n - 1) % n;
  Constant c(group, stencil::ring(true), 100 * group.rank(), with(algorithm::gradient_exchange()));
  for (int t = 0; t < 3; ++t) {
    c.worker.step([&] {
      for (double& x : c.x) x += group.rank() + 1;
    });
  }
  const double both = group.rank() + 1 + (n > 1 ? left + 1 : 0);
  expect_near(c.x[2], 100 * group.rank() + 3 * both, "own and the neighbor's steps", 1e-13);
}

void choco_publishes_weights_for_the_mean_model(const Group& group) {
  Constant c(group, stencil::ring(), 1.0 + group.rank(), with(algorithm::choco({.top_k = 1})));
  c.idle(7);
  group.barrier(Deadline(Seconds(20)), "all have published");
  std::vector<double> mean(c.x.size());
  c.worker.mean_model({view_of("x", std::span(mean))});
  expect_near(mean[0], (group.size() + 1) / 2.0, "the mean model is of weights", 1e-13);
  group.barrier(Deadline(Seconds(20)), "all have looked");
}

/// A neighbor reads one payload vector, which is not the first one on every edge.
void relay_sum_averages_buffers_by_the_mixing_weights(const Group& group) {
  const int n = group.size(), rank = group.rank();
  for (const bool is_star : {false, true}) {
    if (n > 9) continue;
    std::vector<std::vector<int>> reads(static_cast<std::size_t>(n));
    for (int w = 1; w < n; ++w) {
      const int other = is_star ? 0 : w - 1;
      reads[static_cast<std::size_t>(w)].push_back(other);
      reads[static_cast<std::size_t>(other)].push_back(w);
    }
    const Topology tree("tree", reads);
    const std::vector<double> mixing = mixing_matrix(tree);
    const TopologyRule rule("tree", [&](int) { return Schedule(tree); });
    std::vector<double> x(3000), statistic(70);
    Worker worker(
        group, rule,
        {view_of("x", std::span(x)), view_of("statistic", std::span(statistic), Role::buffer)},
        with(algorithm::relay_sum({.degree = std::max(2, n - 1)})));
    for (int t = 0; t < 3; ++t) {
      const auto value = [t](int w) { return 1.0 + w * w + 10 * t; };
      worker.step([&] { std::ranges::fill(statistic, value(rank)); });
      double expected = 0;
      for (int w = 0; w < n; ++w)
        expected += mixing[static_cast<std::size_t>(rank * n + w)] * value(w);
      expect_near(statistic[69], expected, fmt::format("star {}, round {}", is_star, t), 1e-12);
    }
    worker.await_finish();
    group.barrier(Deadline(Seconds(20)), "all have averaged");
  }
}

void every_rule_trains_and_republishes(const Group& group) {
  for (const std::string_view name : algorithm::names()) {
    std::vector<float> x(3000, static_cast<float>(group.rank())), statistic(3, 1.0F);
    WorkerOptions options = with(algorithm::by_name(name, short_of(name)));
    options.initial = Initial::broadcast;
    const bool pairs = name == "pairwise" || name == "noloco" || name == "a2cid2";
    const TopologyRule matching("matchings", [](int workers) { return matchings(workers); });
    if (pairs && group.size() % 2 != 0) continue;
    Worker worker(
        group, pairs ? matching : topology_for(name),
        {view_of("x", std::span(x)), view_of("statistic", std::span(statistic), Role::buffer)},
        options);
    const auto train = [&] {
      for (float& value : x) value -= 0.02F * (value - static_cast<float>(group.rank()));
    };
    for (int t = 0; t < 10; ++t) worker.step(train, {.learning_rate = 0.02});
    x.assign(x.size(), 2.0F);
    worker.republish();
    for (int t = 0; t < 300; ++t) worker.step(train, {.learning_rate = 0.02});
    worker.await_finish();
    // Where the mean of all lies, or (alone, historical) at least between the workers' own optima.
    const double mean = (group.size() - 1) / 2.0;
    std::vector<float> out(x.size()), out_statistic(3);
    worker.mean_model({view_of("x", std::span(out)),
                       view_of("statistic", std::span(out_statistic), Role::buffer)});
    expect_near(out[2999], mean, fmt::format("{}: the mean model", name), 0.06);
    expect_near(out_statistic[2], 1, fmt::format("{}: the buffer", name), 1e-6);
    const bool averages = name != "none" && name != "gradient_exchange" && name != "choco";
    expect(
        !averages || std::abs(x[0] - mean) <= 0.8 * std::abs(group.rank() - mean) + 0.06,
        fmt::format("{}: worker {} stands at {}, as if it read nobody", name, group.rank(), x[0]));
  }
}

}  // namespace fast::testing
