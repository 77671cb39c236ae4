#include "worker/lag_detector.hpp"

#include <fast/topology/stencil.hpp>
#include <thread>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::LagDetector;

namespace {

WorkerOptions stale(std::int64_t staleness) {
  WorkerOptions options;
  options.staleness = staleness;
  options.rejoin_after = 10;
  return options;
}

}  // namespace

TEST_CASE(
    "at staleness 0 a worker is left behind when its neighbors' slots of the round are gone") {
  Scene scene(1, 3, stencil::ring(), stale(0));
  LagDetector lag(scene.context, *scene.peers, scene.plan);
  const auto missed = Scene::absent(0, Arrival::State::missed);
  scene.peers->states[0].progress = 3;
  CHECK_FALSE(lag.keeps_up({missed, Scene::absent(2)}));
  CHECK(lag.keeps_up({missed, scene.arrival(2, 1)}));  // one neighbor is still there
  CHECK(lag.keeps_up({Scene::absent(0), Scene::absent(2)}));
  scene.peers->states[0].progress = 2;
  CHECK(lag.keeps_up({missed, Scene::absent(2)}));  // as far as slots may lie ahead anyway
}

TEST_CASE("above staleness 0 only a worker that was stopped can be left behind") {
  Scene scene(1, 3, stencil::ring(), stale(4));
  LagDetector lag(scene.context, *scene.peers, scene.plan);
  const std::vector arrivals{scene.arrival(0, 1), scene.arrival(2, 1)};
  PeerState& own = scene.peers->states[1];
  scene.peers->patience = Seconds(0.01);
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  scene.peers->states[2].progress = 11;
  own.heartbeat = 1000;  // it lived on: its heart has beaten
  sleep();
  CHECK(lag.keeps_up(arrivals));
  sleep();  // and now it has not
  CHECK_FALSE(lag.keeps_up(arrivals));
  scene.peers->states[2].progress = 10;
  sleep();
  CHECK(lag.keeps_up(arrivals));  // no more than rejoin_after behind
}

TEST_CASE("only living neighbors of the round count as ahead") {
  Scene scene(1, 5, stencil::ring(), stale(0));
  const LagDetector lag(scene.context, *scene.peers, scene.plan);
  scene.progress.combinations = 4;
  CHECK(lag.furthest_neighbor() == 4);
  scene.peers->states[3].progress = 50;  // no neighbor
  scene.peers->states[0].progress = 40;
  scene.peers->states[0].status = WorkerStatus::finished;
  scene.peers->states[2].progress = 9;
  CHECK(lag.furthest_neighbor() == 9);
}
