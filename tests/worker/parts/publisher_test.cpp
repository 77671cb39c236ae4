#include "worker/publisher.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::Publisher;

namespace {

WorkerOptions of(algorithm::Rule rule, std::int64_t staleness) {
  WorkerOptions options;
  options.algorithm = std::move(rule);
  options.staleness = staleness;
  return options;
}

}  // namespace

TEST_CASE("a rule that publishes before the step begins with its weights as round 0's message") {
  Scene scene(1, 3, stencil::ring(), of(algorithm::awc(), 0));
  Publisher(scene.context).begin(0);
  CHECK(scene.exchange.rounds == std::vector<std::int64_t>{0});
  CHECK(scene.exchange.newest().values == scene.x);
  CHECK(scene.progress.sent);
}

TEST_CASE("weights alone are no neighbor's message at staleness 0, and the newest one above it") {
  for (const std::int64_t staleness : {0, 2}) {
    Scene scene(1, 3, stencil::ring(), of(algorithm::atc(), staleness));
    scene.progress.combinations = 7;
    Publisher(scene.context).publish_weights();
    const std::int64_t expected = staleness == 0 ? worker::no_round : 7;
    CHECK(scene.exchange.rounds == std::vector<std::int64_t>{expected});
    CHECK(scene.exchange.newest().values == scene.x);
  }
}

TEST_CASE("a message that the rule holds back leaves the last one in force") {
  Scene scene(0, 3, stencil::ring(), of(algorithm::event_triggered({.threshold = 1.0}), 0));
  scene.mixer.start(true);
  Publisher publisher(scene.context);
  publisher.begin(0);
  const auto in_force = scene.exchange.newest().values;
  scene.x.assign(scene.x.size(), 0.125);  // moved by less than the threshold
  publisher.publish({.round = 1});
  CHECK_FALSE(scene.progress.sent);
  CHECK(scene.exchange.rounds.back() == 1);
  CHECK(scene.exchange.newest().values == in_force);
}

TEST_CASE("a restart begins another epoch of a rule that remembers its neighbors") {
  Scene scene(0, 3, stencil::ring(), of(algorithm::gradient_tracking(), 0));
  CHECK(scene.mixer.scalars().epoch() == 0);
  Publisher(scene.context).restart(4);
  CHECK(scene.mixer.scalars().epoch() == 1);
}
