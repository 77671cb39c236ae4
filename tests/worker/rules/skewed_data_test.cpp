// Rules for workers whose data differ, each worker with a parabola of its own place and curvature.
#include <fast/core/random.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/lockstep.hpp"
#include "support/rules.hpp"
#include "support/seed.hpp"
#include "worker/start/meetings.hpp"

namespace fast::testing::skewed_data {

constexpr int workers = 8;

inline double target(int worker) { return worker * worker - 3.0; }
inline double curvature(int worker) { return 0.5 + 0.2 * worker; }

/// Of the workers from `first` to the one before `end`.
inline double optimum(int first = 0, int end = workers) {
  double pull = 0, mass = 0;
  for (int w = first; w < end; ++w) {
    pull += curvature(w) * target(w);
    mass += curvature(w);
  }
  return pull / mass;
}

inline WorkerOptions with(std::string_view rule, const algorithm::Parameters& parameters = {}) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(rule, parameters);
  return options;
}

inline Lockstep<double> started(std::string_view rule, const algorithm::Parameters& parameters = {},
                                int count = workers) {
  return {testing::topology_for(rule), count, std::vector<double>(3, 1.0), with(rule, parameters)};
}

inline void train(Lockstep<double>& run, int rounds, double rate = 0.02) {
  for (int t = 0; t < rounds; ++t) {
    run.round(
        [&](int worker, std::span<double> x) {
          for (double& value : x) value -= rate * curvature(worker) * (value - target(worker));
        },
        rate);
  }
}

/// Of the workers from `first` to the one before `end`, from the optimum of these.
inline double furthest(const Lockstep<double>& run, int first = 0, int end = workers) {
  double found = 0;
  for (int w = first; w < end; ++w)
    found = std::max(found, std::abs(run.x(w)[0] - optimum(first, end)));
  return found;
}

inline double end_of(std::string_view rule, const algorithm::Parameters& parameters = {}) {
  Lockstep<double> run = started(rule, parameters);
  train(run, 6000);
  return furthest(run);
}

TEST_CASE("edm and relay_sum bring every worker to the optimum of all, however data differ") {
  CHECK(end_of("awc") > 0.5);
  CHECK(end_of("quasi_global_momentum", {{"momentum", "0.5"}}) > 0.1);
  for (const char* momentum : {"0", "0.5", "0.9"})
    CHECK(end_of("edm", {{"momentum", momentum}}) < 1e-10);
  CHECK(end_of("relay_sum") < 1e-10);
}

TEST_CASE("tracking takes away a share mu of what gut is off the optimum") {
  const double none = end_of("gut", {{"momentum", "0"}, {"mu", "0"}});
  CHECK(none == Approx(end_of("atc")).epsilon(1e-9));
  for (const char* mu : {"0.5", "0.9"}) {
    const double share = end_of("gut", {{"momentum", "0"}, {"mu", mu}}) / none;
    CHECK(share < 1.2 * (1 - std::stod(mu)));
    CHECK(share > 0.8 * (1 - std::stod(mu)));
  }
}

TEST_CASE("what messages of relay_sum miss is not missing later") {
  const std::uint64_t seed = test_seed(41);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (const std::uint64_t one_in : {2, 5, 20}) {
    Lockstep<double> run = started("relay_sum");
    run.lose([&](int, int) { return rng.below(one_in) == 0; });
    train(run, 500);
    for (int w = 0; w < workers; ++w) {
      CHECK(run.x(w)[0] > target(0));
      CHECK(run.x(w)[0] < target(workers - 1));
    }
    run.lose({});
    train(run, 6000);
    CHECK(furthest(run) < 1e-10);
  }
}

TEST_CASE("all workers of each part of a broken chain come to the optimum of the part") {
  for (const int count : {2, 3, 5, 8}) {
    for (int cut = 1; cut < count; ++cut) {
      INFO(count << " workers, cut before worker " << cut);
      Lockstep<double> run = started("relay_sum", {}, count);
      train(run, 20);
      run.lose([cut](int reader, int source) { return (reader < cut) != (source < cut); });
      train(run, 4000);
      CHECK(furthest(run, 0, cut) < 1e-10);
      CHECK(furthest(run, cut, count) < 1e-10);
      run.lose({});
      train(run, 4000);
      CHECK(furthest(run, 0, count) < 1e-10);
    }
  }
}

TEST_CASE("a chain without one of its workers is two chains, each at its own optimum") {
  for (int lost = 0; lost < workers; ++lost) {
    INFO("without worker " << lost);
    Lockstep<double> run = started("relay_sum");
    train(run, 20);
    run.lose([lost](int reader, int source) { return reader == lost || source == lost; });
    train(run, 4000);
    CHECK(furthest(run, 0, lost) < 1e-10);
    CHECK(furthest(run, lost, lost + 1) < 1e-10);
    CHECK(furthest(run, lost + 1, workers) < 1e-10);
  }
}

TEST_CASE("a chain averages weights that are older the further their workers are apart") {
  Lockstep<double> run(stencil::grid1d(), 3, std::vector<double>(1, 0.0), with("relay_sum"));
  // Worker 2 moves once. Nobody has told it of worker 0 yet, which does not count.
  run.round([](int worker, std::span<double> x) { x[0] += worker == 2 ? 9 : 0; }, 0.1);
  CHECK(run.x(0)[0] == 0);
  CHECK(run.x(1)[0] == Approx((0 + 0 + 9) / 3.0));
  CHECK(run.x(2)[0] == Approx((0 + 9) / 2.0));
  // Worker 0 hears of the 9 that worker 2 had, and of what worker 1 has now.
  run.round([](int, std::span<double>) {}, 0.1);
  CHECK(run.x(0)[0] == Approx((0 + 3 + 9) / 3.0));
  CHECK(run.x(1)[0] == Approx((0 + 3 + 4.5) / 3.0));
  CHECK(run.x(2)[0] == Approx((4.5 + 3 + 0) / 3.0));
  // Worker 1 does not hear worker 2. In the round after, worker 0 hears of worker 1 alone.
  run.lose([](int reader, int source) { return reader == 1 && source == 2; });
  run.round([](int, std::span<double>) {}, 0.1);
  CHECK(run.x(0)[0] == Approx((4 + 2.5 + 4.5) / 3));
  CHECK(run.x(1)[0] == Approx((4 + 2.5) / 2));
  CHECK(run.x(2)[0] == Approx((0 + 2.5 + 2.5) / 3));
  run.lose({});
  run.round([](int, std::span<double>) {}, 0.1);
  CHECK(run.x(0)[0] == Approx((11 / 3.0 + 3.25) / 2));
  CHECK(run.x(1)[0] == Approx((11 / 3.0 + 3.25 + 5 / 3.0) / 3));
  CHECK(run.x(2)[0] == Approx((4 + 3.25 + 5 / 3.0) / 3));
}

TEST_CASE("a2cid2 agrees faster than pairwise on a long ring, and keeps the mean") {
  const auto distance_after = [](std::string_view rule, int rounds) {
    constexpr int many = 32;
    Lockstep<double> run(schedule::alternating_pairs(), many, std::vector<double>(1, 0.0),
                         with(rule));
    run.round([](int worker, std::span<double> x) { x[0] = worker % many; }, 0.1);
    for (int t = 0; t < rounds; ++t) run.round([](int, std::span<double>) {}, 0.1);
    CHECK(run.mean()[0] == Approx((many - 1) / 2.0).epsilon(1e-12));
    double worst = 0;
    for (int w = 0; w < many; ++w) worst = std::max(worst, std::abs(run.x(w)[0] - run.mean()[0]));
    return worst;
  };
  CHECK(distance_after("a2cid2", 150) < 0.05 * distance_after("pairwise", 150));
}

TEST_CASE("how values spread over pairs is known in closed forms") {
  for (const int n : {6, 8, 32}) {
    const algorithm::Meetings ring = worker::meetings_of(schedule::alternating_pairs().make(n));
    CHECK(ring.spread == Approx(1 / (1 - std::cos(2 * std::acos(-1.0) / n))).epsilon(1e-6));
    CHECK(ring.resistance == Approx((n - 1.0) / n).epsilon(1e-9));
  }
  // Any two of all meet in a round with the probability 1/(N-1): both are (N-1)/N.
  const algorithm::Meetings any = worker::meetings_of(schedule::random_matchings().make(16));
  CHECK(any.spread == Approx(15.0 / 16).epsilon(0.4));
  CHECK(any.resistance == Approx(15.0 / 16).epsilon(0.4));
  const Topology apart("two pairs", std::vector<std::vector<int>>{{1}, {0}, {3}, {2}});
  CHECK(worker::meetings_of(Schedule(apart)).spread == 0);
}

}  // namespace fast::testing::skewed_data
