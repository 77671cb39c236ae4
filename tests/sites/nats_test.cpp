// Sites over a NATS server: nats_test.py starts it and this.
#include <fast/topology/graphs.hpp>

#include <cstdlib>

#include "running_sites.hpp"
#include "support/catch.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("sites over NATS are equal to workers of one job") {
  const char* url = std::getenv("SITES_TEST_URL");
  REQUIRE(url != nullptr);
  constexpr int steps_between = 4;
  const algorithm::Rule rule = algorithm::noloco({.period = steps_between});
  OuterRun run{
      .workers = 3, .topology = schedule::random_matchings(5), .options = outer_options(rule)};
  run.rounds = 10 * steps_between + 2;
  run.starts_equal = true;
  run.elements = 100'000;
  const OuterEnds in_one_job = outer_ends(run);
  OuterEnds ends(3);
  std::vector<sites::SiteStats> stats(3);
  run_sites(3, [&](int me) {
    std::vector<double>& x = ends[static_cast<std::size_t>(me)];
    Rng rng(mix_seed(9, 0));
    for (std::size_t e = 0; e < run.elements; ++e) x.push_back(rng.normal());
    const auto site = sites::join({.name = site_name(me),
                                   .url = url,
                                   .every = steps_between,
                                   .rule = rule,
                                   .topology = run.topology,
                                   .expect = 3});
    Worker worker = site_worker({view_of("x", std::span(x))}, site);
    for (int t = 0; t < run.rounds; ++t) {
      worker.step([&] {
        for (double& value : x) value -= run.rate * (value - goal_of(me));
      });
    }
    worker.finish();
    stats[static_cast<std::size_t>(me)] = sites::stats_of(*site);
  });
  CHECK(largest_difference(ends, in_one_job) < 1e-12);
  double sent = 0, received = 0;
  for (const sites::SiteStats& now : stats) {
    CHECK(now.exchanges == 10);
    CHECK(now.left_out == 0);
    sent += now.bytes_sent;
    received += now.bytes_received;
    // Each partner's message once, and the state of the first site.
    CHECK(now.bytes_received >= static_cast<double>(now.reads) * 800'000);
  }
  CHECK(received <= sent);
}
