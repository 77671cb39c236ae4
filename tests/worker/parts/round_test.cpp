#include "worker/round.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;

namespace {

struct RunningRing : Scene {
  explicit RunningRing(WorkerOptions options = {})
      : Scene(1, 3, stencil::ring(), std::move(options)),
        publisher(context),
        lag(context, *peers, plan),
        round(context, plan, lag, publisher) {
    publisher.begin(0);
  }
  worker::Publisher publisher;
  worker::LagDetector lag;
  worker::Round round;
};

}  // namespace

TEST_CASE("a round combines, completes and publishes for the next one") {
  RunningRing ring;
  ring.exchange.arrivals = {{ring.arrival(0, 4), ring.arrival(2, 7)}};
  CHECK(ring.round.run({.round = 0}));
  CHECK(ring.x[0] == Approx(4));
  CHECK(ring.exchange.completed == 1);
  CHECK(ring.exchange.rounds == std::vector<std::int64_t>{0, 1});
  CHECK(ring.exchange.newest().values == ring.x);
  const WorkerStats& stats = ring.progress.stats;
  CHECK(stats.reads == 2);
  CHECK(stats.messages_sent == 2);
  CHECK(stats.bytes_sent == 2 * Scene::count * sizeof(double));
}

TEST_CASE("a rule that publishes after the step publishes what it combines") {
  WorkerOptions options;
  options.algorithm = algorithm::atc();
  RunningRing ring(options);
  ring.x.assign(Scene::count, 2);  // the step
  ring.exchange.arrivals = {{ring.arrival(0, 5), ring.arrival(2, 8)}};
  CHECK(ring.round.run({.round = 0}));
  CHECK(ring.exchange.rounds.back() == 0);
  CHECK(ring.exchange.newest().values == std::vector<double>(Scene::count, 2));
  CHECK(ring.x[0] == Approx(5));
}

TEST_CASE("absent neighbors are counted, and suspects are told of") {
  std::vector<int> told;
  WorkerOptions options;
  options.on_suspect = [&](int peer) { told.push_back(peer); };
  RunningRing ring(options);
  ring.exchange.arrivals = {{Scene::absent(0), Scene::absent(2, Arrival::State::finished)}};
  CHECK(ring.round.run({.round = 0}));
  CHECK(told == std::vector<int>{0});
  CHECK(ring.progress.stats.skipped == 2);
  CHECK(ring.progress.stats.mean_drift_weight == Approx(2 / 3.0));
  CHECK(ring.x[0] == 1);
}

TEST_CASE("a round that cannot be made changes nothing") {
  RunningRing ring;
  ring.peers->states[0].progress = 9;
  ring.exchange.arrivals = {{Scene::absent(0, Arrival::State::missed), Scene::absent(2)}};
  CHECK_FALSE(ring.round.run({.round = 0}));
  CHECK(ring.exchange.rounds == std::vector<std::int64_t>{0});
  CHECK(ring.exchange.completed == -1);
  CHECK(ring.x == std::vector<double>(Scene::count, 1));
}

TEST_CASE("a payload that stops arriving is fetched again, whole") {
  RunningRing ring;
  auto first = ring.arrival(2, 7);
  first.arriving = 1;
  ring.exchange.comes_bytes = 0;
  ring.exchange.arrivals = {{ring.arrival(0, 4), first}, {ring.arrival(0, 4), ring.arrival(2, 7)}};
  CHECK(ring.round.run({.round = 0}));
  CHECK(ring.exchange.fetched == 2);
  CHECK(ring.x[0] == Approx(4));
}
