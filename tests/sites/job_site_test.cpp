// Sites of several ranks: equal to sites of one rank where their ranks are kept equal; joins,
// failures.
#include <fast/topology/graphs.hpp>

#include <atomic>
#include <cmath>
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
  options.silence = Seconds(20);
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
