#include <cmath>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/closing.hpp>
#include <mutex>
#include <numeric>

#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace fast;

namespace {

std::int64_t rounds_of(const TopologyRule& rule, int workers) {
  const Schedule schedule = rule.make(workers);
  return closing_rounds(schedule, spectrum(schedule));
}

/// Trains for `steps` rounds of which worker r's is a move by r, then closes; every worker's value.
std::vector<double> closed(const TopologyRule& rule, int workers, std::int64_t rounds,
                           const WorkerOptions& training = {}, int steps = 3) {
  std::vector<double> values(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    std::vector<double> x(7);
    WorkerOptions options = training;
    options.deadline = Seconds(30);
    {
      Worker worker(group, rule, {view_of("x", std::span(x))}, options);
      const int own_steps = options.staleness == 0 ? steps : steps * (1 + group.rank());
      for (int t = 0; t < own_steps; ++t) {
        worker.step([&] {
          for (double& value : x) value += group.rank();
        });
      }
      worker.await_finish();
    }
    const Worker closing =
        close_training(group, rule, spectrum(rule.make(workers), training.weights),
                       {view_of("x", std::span(x))}, rounds, options);
    testing::expect(closing.round() == rounds, "as many closing rounds as asked for");
    values[static_cast<std::size_t>(group.rank())] = x[6];
  });
  return values;
}

double spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("closing rounds shrink disagreement to a twentieth by the gap") {
  CHECK(rounds_of(stencil::ring(), 8) == 14);  // .804738^14 = .048
  CHECK(rounds_of(stencil::torus2d(), 16) == 6);
  CHECK(rounds_of(stencil::ring(), 64) == most_closing_rounds);
}

TEST_CASE("exact averages need one round or one period, lone workers none") {
  CHECK(rounds_of(stencil::complete(), 8) == 1);
  CHECK(rounds_of(schedule::one_peer_exponential(), 8) == 3);
  CHECK(rounds_of(schedule::base(1), 5) == schedule::base(1).make(5).period());
  CHECK(rounds_of(schedule::hierarchical_one_peer(4), 16) == 5);  // of a period of 20
  CHECK(rounds_of(stencil::ring(), 1) == 0);
  CHECK(rounds_of(Topology("apart", std::vector<std::vector<int>>{{}, {}}), 2) == 0);
}

TEST_CASE("a schedule that never repeats gets rounds by the number of workers") {
  CHECK(rounds_of(schedule::equidyn(), 8) == 12);
  CHECK(rounds_of(schedule::equidyn(), 9) == 16);
}

TEST_CASE("closing brings replicas together and keeps their mean, whatever the staleness") {
  for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{2}, unbounded_staleness}) {
    WorkerOptions training;
    training.staleness = staleness;
    CAPTURE(staleness);
    const auto apart = closed(stencil::ring(), 8, 0, training);
    CHECK(spread(apart) > 0.1);
    CHECK(spread(closed(stencil::ring(), 8, 60, training)) < 1e-3);
  }
  const auto before = closed(stencil::ring(), 8, 0), after = closed(stencil::ring(), 8, 14);
  CHECK(mean(after) == Approx(mean(before)));
  CHECK(spread(after) < spread(before) / 10);
}

TEST_CASE("closing on a directed graph finds the mean by push-sum") {
  const Topology directed("directed", std::vector<std::vector<int>>{{3}, {0}, {0, 1}, {0, 2}});
  const auto before = closed(directed, 4, 0), after = closed(directed, 4, 60);
  CHECK(spread(after) < 1e-6);
  CHECK(mean(after) == Approx(mean(before)));
}

TEST_CASE("closing finds the mean whatever weights training ran with") {
  WorkerOptions training;
  training.weights = WeightRule::uniform_rows;
  const TopologyRule star = graph::star();
  const auto before = closed(star, 5, 0, training), after = closed(star, 5, 80, training);
  CHECK(spread(after) < 1e-6);
  CHECK(mean(after) == Approx(mean(before)));
}
