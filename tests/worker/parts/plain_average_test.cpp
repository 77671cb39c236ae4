#include "combine/plain_average.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/publisher.hpp"

using namespace fast;
using combine::PlainAverage;
using testing::Scene;

namespace {

struct Ring : Scene {
  Ring() : Scene(1, 3, stencil::ring()), average(exchange, mixer.memory()) {
    worker::Publisher(context).begin(0);
  }
  Arrival arriving(int worker, double value) {
    Arrival made = arrival(worker, value);
    made.arriving = 1;
    return made;
  }
  bool run(std::vector<Arrival> arrivals) {
    return average.run(arrivals, plan.at(0)->row, exchange.acquire(), {wait_s, mix_s});
  }
  PlainAverage average;
  double wait_s = 0, mix_s = 0;
};

const std::vector<double> as_it_was(Scene::count, 1);

}  // namespace

TEST_CASE("parts are averaged as they come, into the model and the next publication") {
  Ring ring;
  CHECK(ring.run({ring.arriving(0, 4), ring.arrival(2, 7)}));
  CHECK(ring.x[2] == Approx(4));
  ring.exchange.publish(1, false);
  CHECK(ring.exchange.newest().values == ring.x);
}

TEST_CASE("payloads that are there are averaged in one pass") {
  Ring ring;
  CHECK(ring.run({ring.arrival(0, 4), ring.arrival(2, 7)}));
  CHECK(ring.x[2] == Approx(4));
  ring.exchange.publish(1, false);
  CHECK(ring.exchange.newest().values == ring.x);
}

TEST_CASE("the weight of an absent neighbor stays with the worker") {
  Ring ring;
  CHECK(ring.run({Scene::absent(0), ring.arrival(2, 7)}));
  CHECK(ring.x[1] == Approx(1 + (7 - 1) / 3.0));
}

TEST_CASE("a payload that changed while it was read is reported") {
  Ring ring;
  ring.exchange.torn = {2};
  CHECK_FALSE(ring.run({ring.arrival(0, 4), ring.arrival(2, 7)}));
}

TEST_CASE("the model stays as it is when a payload does not come or is torn on its way") {
  Ring ring;
  ring.exchange.comes_bytes = 8;
  CHECK_FALSE(ring.run({ring.arriving(0, 4), ring.arrival(2, 7)}));
  ring.exchange.comes_bytes = whole_payload;
  ring.exchange.torn = {0};
  CHECK_FALSE(ring.run({ring.arriving(0, 4), ring.arrival(2, 7)}));
  CHECK(ring.x == as_it_was);
}

TEST_CASE("only parameters of f32 and f64 are averaged in parts") {
  std::vector<float> values(3);
  std::vector<BFloat16> halves(3);
  const auto fits = [](TensorView view) {
    return PlainAverage::fits(ParameterLayout({std::move(view)}));
  };
  CHECK(fits(view_of("x", std::span(values))));
  CHECK_FALSE(fits(view_of("x", std::span(values), Role::buffer)));
  CHECK_FALSE(fits(view_of("x", std::span(halves))));
}
