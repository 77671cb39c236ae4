#include "combine/streaming_average.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/publisher.hpp"

using namespace fast;
using combine::StreamingAverage;
using testing::Scene;

namespace {

struct Stream : Scene {
  Stream() : Scene(1, 3, stencil::ring()), average(exchange, mixer.layout()) {
    worker::Publisher(context).begin(0);
  }
  Arrival arriving(int worker, double value) {
    Arrival made = arrival(worker, value);
    made.arriving = 1;
    return made;
  }
  bool run(std::vector<Arrival> arrivals) {
    return average.run(arrivals, plan.at(0)->row, {wait_s, mix_s});
  }
  StreamingAverage average;
  double wait_s = 0, mix_s = 0;
};

const std::vector<double> as_it_was(Scene::count, 1);

}  // namespace

TEST_CASE("parts are averaged as they come, into the model and the next publication") {
  Stream stream;
  CHECK(stream.run({stream.arriving(0, 4), stream.arrival(2, 7)}));
  CHECK(stream.x[2] == Approx(4));
  stream.exchange.publish(1, false);
  CHECK(stream.exchange.newest().values == stream.x);
}

TEST_CASE("nothing is done when nothing is on its way, or when it does not come or is torn") {
  Stream stream;
  CHECK_FALSE(stream.run({stream.arrival(0, 4), stream.arrival(2, 7)}));
  stream.exchange.comes_bytes = 8;
  CHECK_FALSE(stream.run({stream.arriving(0, 4), stream.arrival(2, 7)}));
  stream.exchange.comes_bytes = whole_payload;
  stream.exchange.torn = {0};
  CHECK_FALSE(stream.run({stream.arriving(0, 4), stream.arrival(2, 7)}));
  CHECK(stream.x == as_it_was);
}

TEST_CASE("only parameters of f32 and f64 are averaged in parts") {
  std::vector<float> values(3);
  std::vector<BFloat16> halves(3);
  const auto fits = [](TensorView view) {
    return StreamingAverage::fits(ParameterLayout({std::move(view)}));
  };
  CHECK(fits(view_of("x", std::span(values))));
  CHECK_FALSE(fits(view_of("x", std::span(values), Role::buffer)));
  CHECK_FALSE(fits(view_of("x", std::span(halves))));
}
