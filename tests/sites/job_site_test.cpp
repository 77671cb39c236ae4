// Sites of several ranks: equal to sites of one rank where their ranks are kept equal; joins,
// failures.
#include <fast/topology/graphs.hpp>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <set>

#include "running_sites.hpp"
#include "support/catch.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

sites::SiteOptions options_at(int place, int count) {
  sites::SiteOptions options = options_of(place, count);
  options.rule = algorithm::gasloc({.period = steps_between});
  return options;
}

/// Offsets of a site's ranks, whose sum is 0.
double offset_of(int rank, int ranks) { return rank - (ranks - 1) / 2.0; }

WorkerOptions inside(const algorithm::Rule& rule, std::shared_ptr<SiteExchange> site) {
  WorkerOptions options = quick();
  options.algorithm = rule;
  options.site = std::move(site);
  return options;
}

}  // namespace

TEST_CASE("sites whose ranks are kept equal by an all-reduce are equal to workers of one job") {
  const std::vector<int> ranks_of =
      GENERATE(std::vector<int>{2, 2}, std::vector<int>{1, 2, 3}, std::vector<int>{4, 1, 1, 2});
  const auto count = static_cast<int>(ranks_of.size());
  OuterRun run{.workers = count,
               .topology = stencil::ring(),
               .options = outer_options(algorithm::gasloc({.period = steps_between}))};
  run.rounds = 8 * steps_between + 1;
  run.starts_equal = true;
  const OuterEnds expected = outer_ends(run);
  std::vector<OuterEnds> found(ranks_of.size());
  const auto hub = std::make_shared<MemoryHub>();
  run_sites(count, [&](int place) {
    const int ranks = ranks_of[static_cast<std::size_t>(place)];
    OuterEnds& ends = found[static_cast<std::size_t>(place)];
    ends.resize(static_cast<std::size_t>(ranks));
    local::run(ranks, [&](const Group& group) {
      const int rank = group.rank();
      std::vector<double>& x = ends[static_cast<std::size_t>(rank)];
      Rng rng(mix_seed(9, 0));
      for (std::size_t e = 0; e < run.elements; ++e) x.push_back(rng.normal());
      const double goal = goal_of(place) + offset_of(rank, ranks);
      Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                    inside(algorithm::allreduce(), site_on(hub, options_at(place, count))));
      for (int t = 0; t < run.rounds; ++t) {
        worker.step([&] {
          for (double& value : x) value -= run.rate * (value - goal);
        });
      }
      worker.finish();
    });
  });
  for (int place = 0; place < count; ++place) {
    const auto site = static_cast<std::size_t>(place);
    INFO("site " << place << " of " << count);
    for (const std::vector<double>& x : found[site])
      CHECK(largest_difference({x}, {expected[site]}) < 1e-12);
  }
}

TEST_CASE("the mean of all ranks goes to the mean of their goals, whatever the ranks do inside") {
  const algorithm::Rule rule = GENERATE(algorithm::awc(), algorithm::atc());
  const std::vector<int> ranks_of{3, 3};
  const auto hub = std::make_shared<MemoryHub>();
  std::vector<double> means(6), goals(6);
  run_sites(2, [&](int place) {
    local::run(3, [&](const Group& group) {
      const auto all = static_cast<std::size_t>(3 * place + group.rank());
      std::vector<double> x(5, 1.0);
      goals[all] = goal_of(static_cast<int>(all));
      sites::SiteOptions options = options_at(place, 2);
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))},
                    inside(rule, site_on(hub, options)));
      for (int t = 0; t < 100 * steps_between; ++t) {
        worker.step([&] {
          for (double& value : x) value -= 0.05 * (value - goals[all]);
        });
      }
      worker.finish();
      means[all] = x[0];
    });
  });
  const auto mean = [](const std::vector<double>& of) {
    double sum = 0;
    for (const double value : of) sum += value;
    return sum / static_cast<double>(of.size());
  };
  CHECK(std::abs(mean(means) - mean(goals)) < 0.01);
}

TEST_CASE("all ranks of a site that joins take over the weights and the rounds of the other one") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<bool> joins{false}, joined{false};
  std::vector<double> found(2);
  std::vector<std::int64_t> rounds(2);
  run_sites(2, [&](int place) {
    sites::SiteOptions options = options_at(place, 1);
    options.staleness = 1;
    if (place == 0) {
      std::vector<double> x{7};
      Worker worker = site_worker({view_of("x", std::span(x))}, site_on(hub, options));
      for (int t = 0; t < 2 * steps_between; ++t) worker.step([] {});
      joins = true;
      const auto until = Clock::now() + std::chrono::seconds(30);
      while (!joined && Clock::now() < until) {
        worker.step([] {});
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      worker.finish();
      return;
    }
    const auto until = Clock::now() + std::chrono::seconds(30);
    while (!joins && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    local::run(2, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      std::vector<double> x{1.0 + group.rank()};
      Worker worker(group, stencil::complete(), {view_of("x", std::span(x))},
                    inside(algorithm::awc(), site_on(hub, options)));
      found[rank] = x[0];
      rounds[rank] = worker.stats().rounds;
      joined = true;
      worker.finish();
    });
  });
  CHECK(found == std::vector<double>{7, 7});
  CHECK(rounds[0] >= 2 * steps_between);
  CHECK(rounds[0] == rounds[1]);
}

TEST_CASE("a rank that goes on for a lost one gives no weights before its first exchange") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<bool> goes_on{false}, asked{false}, joined{false};
  MemoryBus ear(hub, "ear");
  ear.listen("run.ask.a", [&](std::string_view, std::string_view) { asked = true; });
  run_sites(2, [&](int place) {
    const sites::SiteOptions options = options_of(place, 1);
    const auto await = [](const std::atomic<bool>& flag) {
      const auto until = Clock::now() + std::chrono::seconds(20);
      while (!flag && Clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
    if (place == 1) {
      await(goes_on);
      std::vector<double> x{-1};
      Worker worker = site_worker({view_of("x", std::span(x))}, site_on(hub, options));
      expect(x[0] == 7, fmt::format("it begins with the mean of the ranks: {}", x[0]));
      joined = true;
      return worker.finish();
    }
    std::vector<double> mean{7};
    const ParameterLayout layout({view_of("x", std::span(mean))});
    sites::OuterStep lost(layout, options.rule);
    lost.start(layout);
    const auto handover = lost.handover();
    mean[0] = 0;  // before an exchange, this rank has not heard of it
    sites::Site site(
        options, [&](const LogSink&) { return std::make_unique<MemoryBus>(hub, options.name); });
    std::int64_t rounds = steps_between + 1;
    site.succeed(layout, {}, {handover->data(), handover->size_bytes()}, rounds, 0);
    goes_on = true;
    await(asked);
    site.end_step(rounds++);
    site.end_step(rounds++);
    mean[0] = 7;
    const auto until = Clock::now() + std::chrono::seconds(20);
    while (!joined && Clock::now() < until) {
      site.end_step(rounds++);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    site.finish();
  });
  ear.end();
}

namespace {

/// When the rank is lost that has the connection: around the third exchange, which begins after 8
/// rounds and ends after 9.
enum class Lost { never, before_begin, in_begin, between, in_end, after_end };

/// Site "a" as its ranks have it: what a meeting leaves counts when it has ended.
class Ranks {
 public:
  Ranks(const std::shared_ptr<MemoryHub>& hub, const sites::SiteOptions& options)
      : hub_(hub), options_(options), layout_({view_of("x", std::span(mean_))}) {
    site_ = make();
    site_->begin(layout_, {});
    leave();
  }
  double mean() const { return mean_[0]; }
  void step() { mean_[0] += 1; }
  void meet(std::int64_t rounds) {
    site_->end_step(rounds);
    if (site_->acts_after(rounds)) leave();
  }
  /// The meeting has not ended when the rank is lost: the others have not heard of its result.
  void act_in_vain(std::int64_t rounds) {
    const double before = mean_[0];
    site_->end_step(rounds);
    mean_[0] = before;
  }
  void lose(std::int64_t rounds) {
    site_->abandon();
    site_ = make();
    site_->succeed(layout_, {}, left_, rounds, 0);
  }
  void finish() { site_->finish(); }

 private:
  std::unique_ptr<sites::Site> make() {
    return std::make_unique<sites::Site>(options_, [this](const LogSink&) {
      return std::make_unique<MemoryBus>(hub_, options_.name);
    });
  }
  void leave() {
    const auto handover = site_->handover();
    left_.assign(handover->data(), handover->data() + handover->size_bytes());
  }

  std::shared_ptr<MemoryHub> hub_;
  sites::SiteOptions options_;
  std::vector<double> mean_{0};
  ParameterLayout layout_;
  std::unique_ptr<sites::Site> site_;
  std::vector<std::byte> left_;
};

/// The weights of two sites after five exchanges. The other site does not exchange while the rank
/// is being replaced, so that nothing is left out.
std::pair<double, double> ends_with(Lost lost, const algorithm::Rule& rule) {
  constexpr std::int64_t last = 15;
  const std::int64_t lost_in = lost <= Lost::in_begin ? 8 : lost <= Lost::in_end ? 9 : 10;
  const std::int64_t held_in = lost == Lost::after_end ? 11 : lost_in;  // the other site
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<std::int64_t> made = 0;
  std::atomic<bool> goes_on = lost == Lost::never;
  std::pair<double, double> ends;
  const auto await = [](const std::function<bool()>& is_over) {
    const Deadline longest(Seconds(60));
    while (!is_over() && !longest.expired())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    expect(is_over(), "the other thread has come");
  };
  run_sites(2, [&](int place) {
    sites::SiteOptions options = options_at(place, 2);
    options.rule = rule;
    options.topology = stencil::complete();
    if (place == 1) {
      std::vector<double> x{0};
      Worker worker = site_worker({view_of("x", std::span(x))}, site_on(hub, options));
      for (std::int64_t rounds = 1; rounds <= last; ++rounds) {
        if (rounds == held_in) await([&] { return goes_on.load(); });
        worker.step([&] { x[0] -= rounds % steps_between == 1 ? 2 : 0; });
        made = rounds;
      }
      ends.second = x[0];
      return worker.finish();
    }
    Ranks ranks(hub, options);
    for (std::int64_t rounds = 1; rounds <= last; ++rounds) {
      if (rounds % steps_between == 1) ranks.step();
      if (rounds == lost_in && lost != Lost::never) {
        await([&] { return made >= held_in - 1; });
        if (lost == Lost::in_begin || lost == Lost::in_end) ranks.act_in_vain(rounds);
        ranks.lose(rounds);
        goes_on = true;
      }
      ranks.meet(rounds);
    }
    ends.first = ranks.mean();
    ranks.finish();
  });
  return ends;
}

}  // namespace

TEST_CASE("a gateway that is lost in any state of an exchange changes nothing of the weights") {
  const auto rule = GENERATE(
      algorithm::gasloc({.period = steps_between, .rate = 0.8, .acceleration = 0.3, .delay = 1}),
      algorithm::diloco({.period = steps_between, .rate = 0.7, .momentum = 0.5, .delay = 1}));
  INFO(rule.traits().name);
  std::vector<std::future<std::pair<double, double>>> runs;
  for (const Lost lost : {Lost::never, Lost::before_begin, Lost::in_begin, Lost::between,
                          Lost::in_end, Lost::after_end})
    runs.push_back(std::async(std::launch::async, ends_with, lost, rule));
  const auto expected = runs[0].get();
  CHECK(expected.first != Approx(0));
  for (std::size_t state = 1; state < runs.size(); ++state) {
    INFO("state " << state);
    const auto found = runs[state].get();
    CHECK(found.first == Approx(expected.first).epsilon(1e-12));
    CHECK(found.second == Approx(expected.second).epsilon(1e-12));
  }
}

TEST_CASE("what fails at a site's gateway ends all its ranks with that error") {
  const auto hub = std::make_shared<MemoryHub>();
  const int bad = GENERATE(0, 2);
  std::atomic<int> ended{0};
  std::string text;
  try {
    local::run(3, [&](const Group& group) {
      std::vector<float> x(4, 1);
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))},
                    inside(algorithm::none(), site_on(hub, options_at(0, 1))));
      try {
        for (int t = 0; t < steps_between; ++t) {
          worker.step([&] {
            if (group.rank() == bad) x[1] = std::numeric_limits<float>::infinity();
          });
        }
      } catch (const Error&) {
        ++ended;
        throw;
      }
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(ended == 3);
  CHECK_THAT(text, ContainsSubstring("not finite"));
}
