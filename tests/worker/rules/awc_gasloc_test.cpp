// awc within sites and the outer step of gasloc between them: closed forms, and known rules as its
// special cases.
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/hosts.hpp"
#include "topology/placement.hpp"
#include "worker/constant.hpp"
#include "worker/start/requirements.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {

using SiteValues = std::vector<double>;  ///< by worker

struct SitesRun {
  int workers = 4;
  TopologyRule topology = schedule::sites(4, 2);
  algorithm::Rule rule = algorithm::awc_gasloc();
  int rounds = 40;
  std::function<double(int rank)> start = [](int rank) { return rank; };
  /// What a step adds to x.
  std::function<double(int rank, double x)> step = [](int, double) { return 0; };
  int leaver = -1;  ///< leaves half way
};

/// The weights of each worker after each round.
std::vector<SiteValues> after_rounds(const SitesRun& run) {
  std::vector<SiteValues> after(static_cast<std::size_t>(run.rounds),
                                SiteValues(static_cast<std::size_t>(run.workers)));
  local::run(run.workers, [&](const Group& group) {
    const int me = group.rank();
    WorkerOptions options = testing::quick();
    options.algorithm = run.rule;
    testing::Constant c(group, run.topology, run.start(me), options);
    for (SiteValues& values : after) {
      if (me == run.leaver && &values == &after[after.size() / 2]) return c.worker.leave();
      c.worker.step([&] {
        for (double& x : c.x) x += run.step(me, x);
      });
      values[static_cast<std::size_t>(me)] = c.x[3];
    }
  });
  return after;
}

double mean_of(const SiteValues& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double largest_gap(const std::vector<SiteValues>& a, const std::vector<SiteValues>& b) {
  double most = 0;
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (std::size_t w = 0; w < a[t].size(); ++w)
      most = std::max(most, std::abs(a[t][w] - b[t][w]));
  }
  return most;
}

double goal(int rank) { return rank * rank; }

}  // namespace

// d is the difference of two sites. Without steps, u is the value of a site, and W among two sites
// has weights 1/2: d⁺ = (1-α) d + γ (d - d⁻).
TEST_CASE("two sites come together as gasloc of two workers does, and keep the mean") {
  constexpr double alpha = 0.6, gamma = 0.25;
  for (const int links : {1, 2}) {
    SitesRun run{.topology = schedule::sites(4, 2, links)};
    run.rule = algorithm::awc_gasloc({.rate = 0.8, .consensus_step = alpha, .acceleration = gamma});
    const auto after = after_rounds(run);
    double d = 2, before = 2;  // workers 0 and 1 are site 0
    for (std::size_t t = 0; t < after.size(); ++t) {
      INFO("links " << links << ", round " << t);
      if (t % 4 == 3) {
        const double velocity = t == 3 ? 0 : gamma * (d - before);
        before = std::exchange(d, (1 - alpha) * d + velocity);
      }
      CHECK(mean_of(after[t]) == Approx(1.5).epsilon(1e-13));
      if (t % 4 == 2) continue;  // within sites, representatives differ from the others
      for (std::size_t w = 0; w < 4; ++w)
        CHECK(after[t][w] == Approx(1.5 + (w < 2 ? -d : d) / 2).epsilon(1e-13));
    }
    CHECK(std::abs(d) < 1e-2);
  }
}

// On f_i(x) = (x - b_i)²/2, with columns of W that sum to 1, the mean's distance e from the optimum
// follows from e alone: e ← (1-lr) e in a step, and the outer step with the same η and γ.
TEST_CASE("the mean goes to the common optimum by the outer rate and the acceleration") {
  constexpr double lr = 0.1, eta = 0.7, gamma = 0.3, first = 4;
  constexpr int every = 5;
  SitesRun run{.workers = 6, .topology = schedule::sites(every, 3, 3), .rounds = 300};
  run.rule = algorithm::awc_gasloc({.rate = eta, .consensus_step = 0.8, .acceleration = gamma});
  run.start = [](int) { return first; };
  run.step = [](int rank, double x) { return -lr * (x - goal(rank)); };
  const auto after = after_rounds(run);
  const double optimum = (0 + 1 + 4 + 9 + 16 + 25) / 6.0;
  double e = first - optimum, phi = e, before = 0;
  for (int t = 0; t < run.rounds; ++t) {
    const double step = -lr * e;
    if (t % every == every - 2) {  // e is that of u
      phi = e + (t > every ? gamma * (e - before) : 0);
      before = std::exchange(e, phi + step);
    } else {
      e += step;
    }
    if ((t + 1) % every == every - 2) e = phi + eta * (e - phi);
    INFO("round " << t);
    REQUIRE(std::abs(mean_of(after[static_cast<std::size_t>(t)]) - optimum - e) < 1e-12);
  }
  CHECK(std::abs(e) < 1e-6);
}

TEST_CASE("workers with one optimum come to it, whatever they start with") {
  SitesRun run{.workers = 8, .topology = schedule::sites(4, 2), .rounds = 400};
  run.rule = algorithm::awc_gasloc({.rate = 0.8, .consensus_step = 0.9, .acceleration = 0.3});
  run.step = [](int, double x) { return -0.1 * (x - 3); };
  const auto after = after_rounds(run);
  for (const double x : after.back()) CHECK(std::abs(x - 3) < 1e-6);
}

TEST_CASE("without outer options it is awc on the same topology") {
  SitesRun run{.workers = 6, .rounds = 60};
  run.step = [](int rank, double x) { return -0.05 * (x - goal(rank)); };
  for (const TopologyRule& topology :
       {schedule::sites(3, 2), schedule::sites(4, 3, 2), schedule::sites(3, 1),
        schedule::hierarchical_one_peer(2), schedule::sites(3, 6)}) {
    INFO(topology.name());
    run.topology = topology;
    run.rule = algorithm::awc();
    const auto awc = after_rounds(run);
    run.rule = algorithm::awc_gasloc();
    CHECK(largest_gap(after_rounds(run), awc) < 1e-12);
    run.rule = algorithm::awc_gasloc({.rate = 0.8});
    const bool has_others = run.topology.make(6).period() > 1;
    CHECK((largest_gap(after_rounds(run), awc) > 1e-3) == has_others);
  }
}

// gasloc makes its exchange after the step, awc_gasloc adds the step of the round to it. With steps
// that do not depend on x, that is one step earlier.
TEST_CASE("with one worker a site and constant steps, exchanges are those of gasloc") {
  constexpr int every = 4;
  const auto step = [](int rank) { return 0.25 * rank - 0.3; };
  SitesRun run{.topology = schedule::sites(every, 1)};
  run.step = [&](int rank, double) { return step(rank); };
  run.rule = algorithm::awc_gasloc({.consensus_step = 0.8, .acceleration = 0.3});
  const auto found = after_rounds(run);
  run.topology = schedule::base(1);
  run.rule = algorithm::gasloc({.period = every, .consensus_step = 0.8, .acceleration = 0.3});
  run.start = [&](int rank) { return rank - step(rank); };
  const auto gasloc = after_rounds(run);
  for (std::size_t t = every - 1; t < found.size(); t += every) {
    for (int w = 0; w < 4; ++w) {
      const auto worker = static_cast<std::size_t>(w);
      CHECK(found[t][worker] - step(w) == Approx(gasloc[t][worker]).epsilon(1e-12));
    }
  }
}

// With as many links as workers of a site, all W are symmetric, also without the one that left.
TEST_CASE("when a worker leaves, the mean of the others goes to their optimum") {
  SitesRun run{.topology = schedule::sites(4, 2, 2), .rounds = 800, .leaver = 2};
  run.rule = algorithm::awc_gasloc({.rate = 0.9, .acceleration = 0.3});
  run.step = [](int rank, double x) { return -0.05 * (x - goal(rank)); };
  const SiteValues end = after_rounds(run).back();
  CHECK(std::abs(mean_of({end[0], end[1], end[3]}) - (0 + 1 + 9) / 3.0) < 1e-3);
}

// A step of η is made before an exchange. If set_schedule() makes the coming round one between
// sites, the weights come as they are; if it takes such a round away, their step has been made.
TEST_CASE("with another schedule of sites in any round, the mean follows the outer steps made") {
  const std::uint64_t seed = test_seed(41);
  Rng rng(seed);
  const auto below = [&](int count) {
    return static_cast<int>(rng.below(static_cast<std::uint64_t>(count)));
  };
  for (int k = 0; k < 12; ++k) {
    constexpr int rounds = 400;
    constexpr double lr = 0.1;
    const int sizes[] = {1, 2, 3, 6};
    const std::int64_t every[] = {3 + below(4), 3 + below(4)};
    const TopologyRule topologies[] = {schedule::sites(every[0], sizes[below(4)], 6),
                                       schedule::sites(every[1], sizes[below(4)], 6)};
    const int changes_in = 1 + below(20);
    const double eta = 0.6 + 0.1 * below(5), gamma = 0.1 * below(4);
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": every " << every[0] << ", then "
                           << every[1] << " from round " << changes_in);
    std::vector<SiteValues> after(rounds, SiteValues(6));
    local::run(6, [&](const Group& group) {
      WorkerOptions options = testing::quick();
      options.algorithm =
          algorithm::awc_gasloc({.rate = eta, .consensus_step = 0.8, .acceleration = gamma});
      const int me = group.rank();
      testing::Constant c(group, topologies[0], 4, options);
      for (int t = 0; t < rounds; ++t) {
        if (t == changes_in) c.worker.set_schedule(topologies[1]);
        c.worker.step([&] {
          for (double& x : c.x) x -= lr * (x - goal(me));
        });
        after[static_cast<std::size_t>(t)][static_cast<std::size_t>(me)] = c.x[3];
      }
    });
    const Schedule before = topologies[0].make(6), later = topologies[1].make(6);
    const auto is_between = [&](std::int64_t t, bool changed) {
      return host_edges_of((changed ? later : before).at(t)) == HostEdges::Kind::between;
    };
    const double optimum = (0 + 1 + 4 + 9 + 16 + 25) / 6.0;
    double e = 4 - optimum, phi = e, u = 0;
    bool first = true;
    for (int t = 0; t < rounds; ++t) {
      const double step = -lr * e;
      if (is_between(t, t >= changes_in)) {
        phi = e + (first ? 0 : gamma * (e - u));
        u = std::exchange(e, phi + step);
        first = false;
      } else {
        e += step;
      }
      if (is_between(t + 1, t >= changes_in)) e = phi + eta * (e - phi);
      INFO("round " << t);
      REQUIRE(std::abs(mean_of(after[static_cast<std::size_t>(t)]) - optimum - e) < 1e-11);
    }
    CHECK(std::abs(e) < 1e-6);
  }
}

TEST_CASE("when a whole site leaves, the mean of the others goes to their optimum") {
  const std::uint64_t seed = test_seed(42);
  Rng rng(seed);
  for (int k = 0; k < 6; ++k) {
    const int size = 1 + static_cast<int>(rng.below(3)), workers = size * (k % 2 == 0 ? 2 : 3);
    const int first =
        size * static_cast<int>(rng.below(static_cast<std::uint64_t>(workers / size)));
    const int leaves_in = 1 + static_cast<int>(rng.below(20));
    INFO("FAST_TEST_SEED=" << seed << ", case " << k << ": " << workers << " workers, the site of "
                           << first << " leaves in round " << leaves_in);
    std::vector<double> ends(static_cast<std::size_t>(workers));
    local::run(workers, [&](const Group& group) {
      const int me = group.rank();
      WorkerOptions options = testing::quick();
      options.algorithm = algorithm::awc_gasloc({.rate = 0.8, .acceleration = 0.3});
      testing::Constant c(group, schedule::sites(4, size, size), 1, options);
      for (int t = 0; t < 900; ++t) {
        if (t == leaves_in && me >= first && me < first + size) return c.worker.leave();
        c.worker.step([&] {
          for (double& x : c.x) x -= 0.05 * (x - goal(me));
        });
      }
      ends[static_cast<std::size_t>(me)] = c.x[3];
    });
    double sum = 0;
    for (int w = 0; w < workers; ++w) {
      if (w < first || w >= first + size) sum += ends[static_cast<std::size_t>(w)] - goal(w);
    }
    CHECK(std::abs(sum) / workers < 1e-6);
  }
}

TEST_CASE("awc_gasloc says what it does not run with") {
  const algorithm::RuleTraits rule = algorithm::awc_gasloc().traits();
  for (const TopologyRule& topology :
       {stencil::ring(), graph::hierarchical(stencil::ring(), 2), schedule::base(1)}) {
    CHECK_THROWS_WITH(fitting_weights(topology.make(4), rule, WeightRule::automatic, false),
                      Contains("needs rounds within sites and rounds between them"));
  }
  const Schedule sites = schedule::sites(3, 2).make(8);
  CHECK(fitting_weights(sites, rule, WeightRule::automatic, false).notice.empty());
  const Schedule moved = placed(sites, {0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(fitting_weights(moved, rule, WeightRule::automatic, false).notice.empty());
  using algorithm::by_name;
  CHECK_THROWS_WITH(by_name("awc_gasloc", {{"period", "50"}}),
                    Contains("\"period\" is unknown; choose from rate, consensus_step"));
  CHECK_THROWS_WITH(by_name("awc_gasloc", {{"rate", "0"}}),
                    Contains("awc_gasloc: rate 0; it must be above 0"));
  CHECK_THROWS_WITH(by_name("awc_gasloc", {{"consensus_step", "2"}}),
                    Contains("awc_gasloc: consensus_step 2; it must be above 0 and at most 1"));
  CHECK_THROWS_WITH(by_name("awc_gasloc", {{"acceleration", "1"}}),
                    Contains("awc_gasloc: acceleration 1; it must be at least 0 and below 1"));
}
