#include "combine/block_sources.hpp"

#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <fast/core/random.hpp>
#include <map>
#include <mutex>

#include "combine/moving_average.hpp"
#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/publisher.hpp"

using namespace fast;
using combine::BlockSources;
using testing::Scene;

namespace {

/// Payloads change while they are read: is_intact() of a worker is false in those of its calls.
class ChangingExchange final : public testing::FakeExchange {
 public:
  using FakeExchange::FakeExchange;
  bool is_intact(const Arrival& arrival) const override {
    const std::lock_guard lock(mutex_);
    if (!FakeExchange::is_intact(arrival)) return false;
    const auto known = changes.find(arrival.payload.data);
    return known == changes.end() || known->second-- > 0;
  }
  /// By payload: how many checks it passes before it has changed.
  mutable std::map<const std::byte*, int> changes;

 private:
  mutable std::mutex mutex_;
};

/// Worker 1 of three on a ring, whose weights are 1/3, with a model of several blocks.
struct Ring {
  static constexpr std::size_t blocks = 3, block = combine::checked_elements, few = blocks * block;

  explicit Ring(std::int64_t staleness, int threads = 1, std::size_t elements = few)
      : count(elements),
        exact(staleness == 0),
        plan(stencil::ring().make(3), 1, WeightRule::automatic, false, false),
        x(count, 1.0),
        mixer(ParameterLayout({view_of("x", std::span(x))}), algorithm::awc().make(), {}, false,
              threads),
        exchange(count, false) {
    mixer.publish_weights(exchange.acquire(), true);
    exchange.publish(0, false);
  }
  Arrival arrival(int worker, double value, std::int64_t round = 0) {
    auto& slot = kept.emplace_back();
    slot.values.assign(count, value);
    slot.scalars.assign(4, 0.0);
    Arrival made;
    made.worker = worker;
    made.round = made.first = round;
    made.payload = slot.payload();
    return made;
  }
  Arrival arriving(int worker, double value) {
    Arrival made = arrival(worker, value);
    made.arriving = 1;
    return made;
  }
  bool run(std::vector<Arrival> of) {
    arrivals = std::move(of);
    BlockSources sources(exchange, arrivals, plan.at(0)->row, 0, exact);
    next = exchange.acquire();
    const bool counts = mixer.combine(sources, {}, &next);
    rejected = sources.rejected();
    return counts;
  }
  /// The value that all elements of a block have, of the model and of the next publication.
  double block_value(std::size_t b) const {
    const auto* slot = reinterpret_cast<const double*>(next.data);
    for (std::size_t e = b * block; e < (b + 1) * block; ++e)
      if (x[e] != x[b * block] || slot[e] != x[e]) return std::nan("");
    return x[b * block];
  }

  std::size_t count;
  bool exact;
  worker::RoundPlan plan;
  std::vector<double> x;
  combine::HostMixer mixer;
  ChangingExchange exchange;
  std::deque<testing::FakeExchange::Slot> kept;
  std::vector<Arrival> arrivals;
  MutablePayload next;
  std::int64_t rejected = 0;
};

bool is_as_it_was(const Ring& ring) { return ring.x == std::vector<double>(ring.count, 1); }

}  // namespace

TEST_CASE("payloads that arrive are averaged as they come, into the model and the next slot") {
  Ring ring(0);
  CHECK(ring.run({ring.arriving(0, 4), ring.arrival(2, 7)}));
  for (std::size_t b = 0; b < Ring::blocks; ++b) CHECK(ring.block_value(b) == Approx(4));
}

TEST_CASE("payloads that are there are averaged at any staleness") {
  for (const std::int64_t staleness : {0, 3}) {
    Ring ring(staleness);
    CHECK(ring.run({ring.arrival(0, 4), ring.arrival(2, 7)}));
    for (std::size_t b = 0; b < Ring::blocks; ++b) CHECK(ring.block_value(b) == Approx(4));
    CHECK(ring.rejected == 0);
  }
}

TEST_CASE("the weight of an absent neighbor stays with the worker") {
  for (const std::int64_t staleness : {0, 3}) {
    Ring ring(staleness);
    CHECK(ring.run({Scene::absent(0), ring.arrival(2, 7)}));
    CHECK(ring.block_value(1) == Approx(1 + (7 - 1) / 3.0));
  }
}

TEST_CASE("at staleness 0 a payload that changed while it was read means: left behind") {
  Ring ring(0);
  ring.exchange.torn = {2};
  CHECK_FALSE(ring.run({ring.arrival(0, 4), ring.arrival(2, 7)}));
  CHECK(ring.exchange.fetched == 0);
}

TEST_CASE("the model stays as it is when a payload does not come or is torn on its way") {
  Ring ring(0);
  ring.exchange.comes_bytes = 8;
  CHECK_FALSE(ring.run({ring.arriving(0, 4), ring.arrival(2, 7)}));
  CHECK(is_as_it_was(ring));
  ring.exchange.comes_bytes = whole_payload;
  ring.exchange.torn = {0};
  CHECK_FALSE(ring.run({ring.arriving(0, 4), ring.arrival(2, 7)}));
  CHECK(is_as_it_was(ring));
}

TEST_CASE("a block whose source has changed is averaged again, with the newer publication") {
  for (const int blocks_before : {0, 1, 2}) {
    INFO("the publication changes after block " << blocks_before);
    Ring ring(3);
    const Arrival old = ring.arrival(0, 4, 5), other = ring.arrival(2, 7, 5);
    ring.exchange.changes[old.payload.data] = blocks_before;
    ring.exchange.arrivals = {{ring.arrival(0, 10, 8), ring.arrival(2, 70, 9)}};
    CHECK(ring.run({old, other}));
    for (std::size_t b = 0; b < Ring::blocks; ++b) {
      const double theirs = static_cast<int>(b) < blocks_before ? 4 : 10;
      CHECK(ring.block_value(b) == Approx(1 + (theirs - 1) / 3 + (7 - 1) / 3.0));
    }
    CHECK(ring.rejected == 1);
    CHECK(ring.exchange.fetched == 1);
    CHECK(ring.arrivals[0].round == (blocks_before == 0 ? 8 : 5));  // the oldest that was used
    CHECK(ring.arrivals[1].round == 5);
  }
}

TEST_CASE("a source that changes during three reads of a block is left out from there on") {
  Ring ring(3);
  const Arrival old = ring.arrival(0, 4), newer = ring.arrival(0, 10);
  ring.exchange.changes[old.payload.data] = 1;
  ring.exchange.changes[newer.payload.data] = 0;
  ring.exchange.arrivals = {{newer, ring.arrival(2, 7)}};
  CHECK(ring.run({old, ring.arrival(2, 7)}));
  CHECK(ring.block_value(0) == Approx(1 + (4 - 1) / 3.0 + (7 - 1) / 3.0));
  CHECK(ring.block_value(1) == Approx(1 + (7 - 1) / 3.0));
  CHECK(ring.block_value(2) == Approx(1 + (7 - 1) / 3.0));
  CHECK(ring.arrivals[0].state == Arrival::State::torn);
  CHECK(ring.rejected == 3);
  CHECK(ring.exchange.fetched == 2);
}

TEST_CASE("a source that has gone when it is fetched again is left out from there on") {
  Ring ring(3);
  const Arrival old = ring.arrival(0, 4);
  ring.exchange.changes[old.payload.data] = 2;
  ring.exchange.arrivals = {{Scene::absent(0), ring.arrival(2, 7)}};
  CHECK(ring.run({old, ring.arrival(2, 7)}));
  CHECK(ring.block_value(1) == Approx(1 + (4 - 1) / 3.0 + (7 - 1) / 3.0));
  CHECK(ring.block_value(2) == Approx(1 + (7 - 1) / 3.0));
  CHECK(ring.arrivals[0].state == Arrival::State::suspect);
}

TEST_CASE("the optimizer's part of a block runs once, however often the block is read") {
  Ring ring(3);
  const Arrival old = ring.arrival(0, 4);
  ring.exchange.changes[old.payload.data] = 1;
  ring.exchange.arrivals = {{ring.arrival(0, 10), ring.arrival(2, 7)}};
  std::vector<int> updates(ring.count);
  const PartUpdate<double> update = [&](std::size_t first, std::span<double> part) {
    for (std::size_t e = 0; e < part.size(); ++e) {
      ++updates[first + e];
      part[e] += 2;
    }
  };
  ring.mixer.take_updates(&update);
  CHECK(ring.run({old, ring.arrival(2, 7)}));
  CHECK(updates == std::vector<int>(ring.count, 1));
  const auto* slot = reinterpret_cast<const double*>(ring.next.data);
  CHECK(slot[0] == Approx(3 + (4 - 1) / 3.0 + (7 - 1) / 3.0));
  CHECK(slot[ring.block] == Approx(3 + (10 - 1) / 3.0 + (7 - 1) / 3.0));
  CHECK(is_as_it_was(ring));
}

TEST_CASE("of several threads, each block is of one publication, and is updated once") {
  constexpr std::size_t count = 1'000'000;
  for (const bool leaves : {false, true}) {
    for (const int checks : {0, 1, 300}) {
      Ring ring(3, 4, count);
      const Arrival old = ring.arrival(0, 4, 5), newer = ring.arrival(0, 10, 8);
      ring.exchange.changes[old.payload.data] = checks;
      if (leaves) ring.exchange.changes[newer.payload.data] = 0;
      ring.exchange.arrivals = {{newer, ring.arrival(2, 70, 9)}};
      std::vector<int> updates(count);
      const PartUpdate<double> update = [&](std::size_t first, std::span<double> part) {
        for (std::size_t e = 0; e < part.size(); ++e) {
          ++updates[first + e];
          part[e] += 2;
        }
      };
      ring.mixer.take_updates(&update);
      CHECK(ring.run({old, ring.arrival(2, 7, 5)}));
      CHECK(updates == std::vector<int>(count, 1));
      const auto* slot = reinterpret_cast<const double*>(ring.next.data);
      const double of_old = 3 + (4 - 1) / 3.0 + (7 - 1) / 3.0;
      const double of_newer = 3 + (leaves ? 0 : (10 - 1) / 3.0) + (7 - 1) / 3.0;
      std::size_t blocks_of_old = 0, others = 0;
      for (std::size_t e = 0; e < count; ++e) {
        if (std::abs(slot[e] - of_old) < 1e-12)
          blocks_of_old += e % Ring::block == 0;
        else
          others += !(std::abs(slot[e] - of_newer) < 1e-12) || slot[e] != slot[e - e % Ring::block];
      }
      CHECK(others == 0);
      CHECK(blocks_of_old * Ring::block <=
            static_cast<std::size_t>(checks) * combine::block_elements);
      CHECK(ring.exchange.fetched == (leaves ? 2 : 1));
      CHECK(ring.rejected == (leaves ? 3 : 1));
      CHECK(ring.arrivals[0].round == (blocks_of_old > 0 ? 5 : 8));
      CHECK((ring.arrivals[0].state == Arrival::State::torn) == leaves);
    }
  }
}

TEST_CASE("a round above staleness 0 is that at staleness 0, but for rounding") {
  for (const bool rotates : {false, true}) {
    std::vector<std::vector<double>> weights, slots;
    for (const std::int64_t staleness : {0, 3}) {
      Ring ring(staleness);
      Rng rng(3);
      const auto filled = [&](std::vector<double>& values) {
        std::generate(values.begin(), values.end(), [&] { return rng.normal(); });
      };
      const std::vector arrivals{ring.arrival(0, 0), ring.arrival(2, 0)};
      for (auto& slot : ring.kept) filled(slot.values);
      filled(ring.x);
      filled(ring.exchange.newest().values);
      const PartUpdate<double> update = [](std::size_t, std::span<double> part) {
        for (double& value : part) value *= 1.1;
      };
      if (rotates) ring.mixer.take_updates(&update);
      CHECK(ring.run(arrivals));
      const auto* slot = reinterpret_cast<const double*>(ring.next.data);
      weights.push_back(ring.x);
      slots.emplace_back(slot, slot + Ring::few);
    }
    for (std::size_t e = 0; e < Ring::few; ++e) {
      REQUIRE(weights[0][e] == Approx(weights[1][e]).margin(1e-14).epsilon(1e-14));
      REQUIRE(slots[0][e] == Approx(slots[1][e]).margin(1e-14).epsilon(1e-14));
    }
  }
}

TEST_CASE("the moving average of weights in slots follows each block's own publication") {
  Ring ring(3);
  const Arrival old = ring.arrival(0, 4);
  ring.exchange.changes[old.payload.data] = 1;
  ring.exchange.arrivals = {{ring.arrival(0, 10), ring.arrival(2, 7)}};
  const PartUpdate<double> none;
  ring.mixer.take_updates(&none);
  CHECK(ring.run({old, ring.arrival(2, 7)}));
  ring.exchange.publish(1, false);
  std::vector<double>& slot = ring.exchange.newest().values;
  std::vector<double> average(Ring::few, 0);
  combine::move_average(reinterpret_cast<std::byte*>(average.data()),
                        ParameterLayout({view_of("x", std::span(slot))}), 0.25, nullptr);
  CHECK(average.front() == Approx((1 + (4 - 1) / 3.0 + (7 - 1) / 3.0) / 4));
  CHECK(average.back() == Approx((1 + (10 - 1) / 3.0 + (7 - 1) / 3.0) / 4));
}

TEST_CASE("values of a read that does not count do not make a model infinite") {
  Ring ring(3);
  const Arrival torn = ring.arrival(0, std::nan(""));
  ring.exchange.changes[torn.payload.data] = 0;
  ring.exchange.arrivals = {{ring.arrival(0, 4), ring.arrival(2, 7)}};
  CHECK(ring.run({torn, ring.arrival(2, 7)}));
  CHECK(ring.mixer.is_finite());
  CHECK(ring.block_value(0) == Approx(4));
}

TEST_CASE("only parameters of f32 and f64 are averaged while they arrive") {
  std::vector<float> values(3);
  std::vector<BFloat16> halves(3);
  const auto may_arrive = [](TensorView view) {
    return BlockSources::may_arrive(ParameterLayout({std::move(view)}));
  };
  CHECK(may_arrive(view_of("x", std::span(values))));
  CHECK_FALSE(may_arrive(view_of("x", std::span(values), Role::buffer)));
  CHECK_FALSE(may_arrive(view_of("x", std::span(halves))));
}
