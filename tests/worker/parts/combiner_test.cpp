#include "worker/round.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/publisher.hpp"

using namespace fast;
using testing::Scene;
using worker::make_combiner;

namespace {

WorkerOptions with_staleness(std::int64_t staleness) {
  WorkerOptions options;
  options.staleness = staleness;
  return options;
}

/// Three workers on a ring: weights of 1/3. The own value is 1.
struct CombiningRing : Scene {
  explicit CombiningRing(std::int64_t staleness)
      : Scene(1, 3, stencil::ring(), with_staleness(staleness)) {
    worker::Publisher(context).begin(0);
  }
};

}  // namespace

TEST_CASE("a combination is x_i + Σ W_ij (m_j - m_i) of those that are there, and is published") {
  for (const std::int64_t staleness : {0, 3}) {
    CombiningRing ring(staleness);
    std::vector both{ring.arrival(0, 4), ring.arrival(2, 7)};
    CHECK(make_combiner(ring.context)->combine(both, *ring.plan.at(0), {}));
    CHECK(ring.x[3] == Approx(1 + (3 + 6) / 3.0));
    ring.exchange.publish(1, false);
    CHECK(ring.exchange.newest().values == ring.x);

    CombiningRing alone(staleness);
    std::vector one{alone.arrival(0, 4), Scene::absent(2)};
    CHECK(make_combiner(alone.context)->combine(one, *alone.plan.at(0), {}));
    CHECK(alone.x[0] == Approx(1 + 3 / 3.0));
  }
}

TEST_CASE("at staleness 0 a payload that was written to meanwhile means: left behind") {
  CombiningRing ring(0);
  ring.exchange.torn = {2};
  std::vector arrivals{ring.arrival(0, 4), ring.arrival(2, 7)};
  CHECK_FALSE(make_combiner(ring.context)->combine(arrivals, *ring.plan.at(0), {}));
}

TEST_CASE("above staleness 0 a torn payload is read three times and then left out") {
  CombiningRing ring(3);
  ring.exchange.torn = {2};
  std::vector arrivals{ring.arrival(0, 4), ring.arrival(2, 7)};
  ring.exchange.arrivals = {arrivals};
  CHECK(make_combiner(ring.context)->combine(arrivals, *ring.plan.at(0), {}));
  CHECK(ring.exchange.fetched == 2);
  CHECK(ring.progress.stats.rejected == 3);
  CHECK(arrivals[1].state == Arrival::State::torn);
  CHECK(ring.x[0] == Approx(1 + 3 / 3.0));
}

TEST_CASE("a neighbor whose sums are torn takes its share of the tracker all the same") {
  WorkerOptions options = with_staleness(3);
  options.algorithm = algorithm::gradient_tracking();
  Scene ring(1, 3, stencil::ring(), options);
  ring.mixer.start(true);
  worker::Publisher publisher(ring.context);
  publisher.begin(0);
  const auto sum_of_trackers = [&] { return ring.exchange.newest().values[Scene::count + 2]; };
  ring.x.assign(Scene::count, 3.0);  // a step of 2 from 1: y = 2
  publisher.publish({.round = 0});
  const double first = sum_of_trackers();
  CHECK(first == Approx(2));
  ring.exchange.torn = {2};
  std::vector arrivals{ring.arrival(0, 6), ring.arrival(2, 7)};
  ring.exchange.arrivals = {arrivals};
  CHECK(make_combiner(ring.context)->combine(arrivals, *ring.plan.at(0), {}));
  CHECK(arrivals[1].state == Arrival::State::torn);
  // x + (6 - 1) / 3 + y; and y keeps a third of 2, gets 6 / 3, and loses the last step.
  CHECK(ring.x[2] == Approx(1 + 5 / 3.0 + 2));
  publisher.publish({.round = 1});  // without a further step
  CHECK(sum_of_trackers() - first == Approx(2 / 3.0 + 2 - 2));
}

TEST_CASE("push_sum's mass is what it keeps and what has arrived, whatever was torn") {
  WorkerOptions options = with_staleness(3);
  options.algorithm = algorithm::push_sum();
  Scene ring(1, 3, stencil::ring(), options);
  ring.mixer.start(true);
  worker::Publisher publisher(ring.context);
  publisher.begin(0);
  publisher.publish({.round = 0});
  const double first = ring.exchange.newest().scalars[0];
  CHECK(first == Approx(1));
  ring.exchange.torn = {2};
  std::vector arrivals{ring.arrival(0, 6), ring.arrival(2, 7)};
  ring.kept.front().scalars[0] = 1;  // the mass that worker 0 has pushed
  ring.exchange.arrivals = {arrivals};
  CHECK(make_combiner(ring.context)->combine(arrivals, *ring.plan.at(0), {}));
  CHECK(arrivals[1].state == Arrival::State::torn);
  // A third of 1 stays, a third of 1 has come. The weighted sum is 1/3 + 6/3.
  CHECK(ring.x[2] == Approx((1 / 3.0 + 2) / (2 / 3.0)));
  publisher.publish({.round = 1});
  CHECK(ring.exchange.newest().scalars[0] - first == Approx(2 / 3.0));
}
