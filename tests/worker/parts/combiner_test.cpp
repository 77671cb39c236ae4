#include "worker/round.hpp"

#include <fast/core/error.hpp>
#include <fast/topology/stencil.hpp>

#include <limits>

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

namespace {

/// Four workers that read each other: weights of 1/4. The own value is 1, those of others 4, 7 and
/// `last`.
struct RobustFour : Scene {
  RobustFour(Robust robust, std::int64_t staleness, int workers = 4)
      : Scene(1, workers, stencil::complete(), robust_with(robust, staleness)) {
    worker::Publisher(context).begin(0);
  }
  static WorkerOptions robust_with(Robust robust, std::int64_t staleness) {
    WorkerOptions options = with_staleness(staleness);
    options.robust = robust;
    return options;
  }
  /// The new value.
  double combine(double last) {
    arrivals = {arrival(0, 4), arrival(2, 7), arrival(3, last)};
    exchange.arrivals = {arrivals};
    combiner = make_combiner(context);
    made = combiner->combine(arrivals, *plan.at(0), {});
    return x[0];
  }
  double kept(int worker) const {
    for (const auto& of : combiner->kept())
      if (of.worker == worker) return of.share;
    return -1;
  }
  std::vector<Arrival> arrivals;
  std::unique_ptr<worker::Combiner> combiner;
  bool made = false;
};

constexpr double not_finite_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the furthest of three neighbors is clipped to the second, or trimmed") {
  for (const std::int64_t staleness : {0, 3}) {
    RobustFour clipping(Robust::clip, staleness);
    CHECK(clipping.combine(-59) == Approx(1 + (3 + 6 - 6) / 4.0));
    CHECK(clipping.kept(3) == Approx(0.1));
    CHECK(clipping.kept(2) == 1);
    RobustFour trimming(Robust::trimmed_mean, staleness);
    CHECK(trimming.combine(-59) == Approx((1 + 4) / 2.0));
    CHECK(trimming.kept(3) == 0);
    CHECK(trimming.kept(0) == 1);
  }
}

TEST_CASE("a publication with NaN is left out, with nothing kept of it") {
  for (const std::int64_t staleness : {0, 3}) {
    RobustFour clipping(Robust::clip, staleness);
    CHECK(clipping.combine(not_finite_value) == Approx(1 + (3 + 6) / 4.0));  // it was the bad one
    CHECK(clipping.kept(3) == 0);
    RobustFour trimming(Robust::trimmed_mean, staleness);
    CHECK(trimming.combine(not_finite_value) == Approx(4));  // the mean of 1, 4, 7
    CHECK(trimming.kept(3) == 0);
    CHECK(trimming.kept(2) == 1);
  }
}

TEST_CASE("an own message that is not finite is told from neighbors that are not") {
  for (const std::int64_t staleness : {0, 3}) {
    for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
      RobustFour four(robust, staleness);
      four.exchange.newest().values[2] = not_finite_value;
      try {
        four.combine(9);
        FAIL("it has combined");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::numeric);
        CHECK_THAT(error.what(), ContainsSubstring("its own message"));
      }
      CHECK(four.combiner->kept().empty());
    }
  }
}

TEST_CASE("neighbors that are lost are not taken for the bad ones") {
  for (const std::int64_t staleness : {0, 3}) {
    RobustFour two(Robust::clip, staleness);
    two.arrivals = {two.arrival(0, 4), Scene::absent(2), two.arrival(3, 101)};
    two.combiner = make_combiner(two.context);
    CHECK(two.combiner->combine(two.arrivals, *two.plan.at(0), {}));
    CHECK(two.x[0] == Approx(1 + (3 + 3) / 4.0));
    CHECK(two.combiner->kept().size() == 2);
    for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
      RobustFour one(robust, staleness);
      one.arrivals = {Scene::absent(0), Scene::absent(2), one.arrival(3, 101)};
      one.combiner = make_combiner(one.context);
      CHECK(one.combiner->combine(one.arrivals, *one.plan.at(0), {}));
      CHECK(one.x[0] == 1);
      CHECK(one.combiner->kept().empty());  // it is not blamed
      CHECK(one.combiner->combine(one.arrivals, *one.plan.at(0), {}));
      REQUIRE(one.said.size() == 1);
      CHECK_THAT(one.said[0], ContainsSubstring("worker 1 has 1 of 3 neighbors"));
    }
    RobustFour none(Robust::trimmed_mean, staleness);
    none.arrivals = {Scene::absent(0), Scene::absent(2), Scene::absent(3)};
    CHECK(make_combiner(none.context)->combine(none.arrivals, *none.plan.at(0), {}));
    CHECK(none.x[0] == 1);
  }
}

// Where two bad ones are borne, clipping needs three neighbors and a trimmed mean four.
TEST_CASE("of five neighbors, three are enough to clip and too few to trim") {
  for (const std::int64_t staleness : {0, 3}) {
    for (const Robust robust : {Robust::clip, Robust::trimmed_mean}) {
      RobustFour six(robust, staleness, 6);
      six.arrivals = {six.arrival(0, 4), six.arrival(2, 13), six.arrival(3, 101), Scene::absent(4),
                      Scene::absent(5)};
      six.combiner = make_combiner(six.context);
      CHECK(six.combiner->combine(six.arrivals, *six.plan.at(0), {}));
      const bool clips = robust == Robust::clip;
      CHECK(six.x[0] == Approx(clips ? 1 + (3 + 3 + 3) / 6.0 : 1));
      CHECK(six.kept(2) == Approx(clips ? 0.25 : -1));
      CHECK(six.said.empty() == clips);
    }
  }
}

TEST_CASE("a publication that changes is measured again, or left out") {
  RobustFour ring(Robust::clip, 3);
  ring.exchange.torn = {2};
  CHECK(ring.combine(-59) == Approx(1 + (3 - 3) / 4.0));
  CHECK(ring.arrivals[1].state == Arrival::State::torn);
  CHECK(ring.progress.stats.rejected == 3);
  RobustFour exact(Robust::clip, 0);
  exact.exchange.torn = {2};
  exact.combine(-59);
  CHECK_FALSE(exact.made);
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
