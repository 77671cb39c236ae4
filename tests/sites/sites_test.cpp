// Sites of one rank: equal to workers of one job, in bad weather; joins, deaths, refusals.
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>

#include <atomic>
#include <cmath>
#include <random>

#include "running_sites.hpp"
#include "support/catch.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using namespace fast::testing;


namespace {

constexpr int steps_between = 3;

sites::SiteOptions options_of(int place, int count) {
  sites::SiteOptions options;
  options.name = site_name(place);
  options.every = steps_between;
  options.silence = Seconds(1);
  options.patience = Seconds(30);
  options.expect = count;
  if (getenv("SITES_LOG") != nullptr) options.log = [](LogLevel, std::string_view t) { fmt::print(stderr, "{:.3f} {}\n", Seconds(Clock::now().time_since_epoch()).count(), t); };
  return options;
}

/// As outer_ends() with `starts_equal` has it, but each worker is a site.
OuterEnds site_ends(const std::shared_ptr<MemoryHub>& hub, const OuterRun& run,
                    const std::function<void(sites::SiteOptions&)>& change) {
  OuterEnds ends(static_cast<std::size_t>(run.workers));
  run_sites(run.workers, [&](int me) {
    std::vector<double>& x = ends[static_cast<std::size_t>(me)];
    Rng rng(mix_seed(9, 0));
    for (std::size_t e = 0; e < run.elements; ++e) x.push_back(rng.normal());
    sites::SiteOptions options = options_of(me, run.workers);
    options.rule = run.options.algorithm;
    options.topology = run.topology;
    change(options);
    Worker worker = site_worker({view_of("x", std::span(x))}, site_on(hub, options));
    for (int t = 0; t < run.rounds; ++t) {
      worker.step([&] {
        for (double& value : x) value -= run.rate * (value - goal_of(me));
      });
    }
    worker.finish();
  });
  return ends;
}

struct Case {
  const char* name;
  algorithm::Rule rule;
  TopologyRule topology;
};

std::vector<Case> cases() {
  return {
      {"gasloc", algorithm::gasloc({.period = steps_between}), stencil::ring()},
      {"gasloc, accelerated",
       algorithm::gasloc({.period = steps_between, .rate = 0.8, .consensus_step = 0.7, .acceleration = 0.3}),
       stencil::complete()},
      {"gasloc, one peer", algorithm::gasloc({.period = steps_between}),
       schedule::random_matchings(7)},
      {"noloco", algorithm::noloco({.period = steps_between}), schedule::random_matchings(7)},
      {"diloco", algorithm::diloco({.period = steps_between}), stencil::complete()},
  };
}

std::uint64_t drawn_seed() { return std::random_device{}(); }

}  // namespace

TEST_CASE("sites of one rank are equal to workers of one job") {
  const Case now = cases()[static_cast<std::size_t>(GENERATE(0, 1, 2, 3, 4))];
  const int count = GENERATE(2, 5);
  const auto seed = drawn_seed();
  INFO(now.name << " on " << count << " sites, seed " << seed);
  OuterRun run{.workers = count, .topology = now.topology, .options = outer_options(now.rule)};
  run.rounds = 8 * steps_between + 1;
  run.starts_equal = true;
  run.elements = 20'000;  // three chunks
  const OuterEnds in_one_job = outer_ends(run);
  const auto hub = std::make_shared<MemoryHub>(
      Weather{.lost = 0.01, .delay = Seconds(0.01), .seed = seed});
  const OuterEnds ends = site_ends(hub, run, [](sites::SiteOptions&) {});
  CHECK(largest_difference(ends, in_one_job) < 1e-12);
}
