#include "worker/participation.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/parts/scripted_seats.hpp"

using namespace fast;
using membership::SeatClaim;
using testing::Scene;
using testing::ScriptedSeats;
using worker::Growth;

namespace {

using GrowthRanks = std::vector<int>;

worker::TopologyConfig ring_wiring() { return {stencil::ring()}; }

/// Worker 0 of some on a ring, and its growth.
struct GrowingWorker : Scene {
  GrowingWorker(int workers, ScriptedSeats& seats, WorkerOptions options = {})
      : Scene(0, workers, stencil::ring(), std::move(options)),
        growth(context, ring_wiring(), plan, seats.members) {}

  /// True when the workers are more afterwards.
  bool make_round() {
    ++progress.stats.rounds;
    if (progress.stats.rounds % setting.steps() == 0) ++progress.combinations;
    return growth.look();
  }
  GrowthRanks sources(std::int64_t combination) { return plan.at(combination)->edges.sources; }

  Growth growth;
};

}  // namespace

TEST_CASE("a run without spares does not grow") {
  Scene scene(0, 3, stencil::ring());
  Growth growth(scene.context, ring_wiring(), scene.plan, nullptr);
  growth.allow({});
  CHECK_FALSE(growth.look());
  growth.prepare(100);
  CHECK(scene.plan.at(100)->edges.sources == GrowthRanks{1, 2});
}

TEST_CASE("a worker enters a growth after the round before it, and then has one neighbor more") {
  ScriptedSeats seats(2, 1, 0);
  GrowingWorker worker(2, seats);
  seats.settle(1, 7, 2);
  for (int round = 1; round < 7; ++round) CHECK_FALSE(worker.make_round());
  CHECK(seats.members->map().seats() == 2);
  CHECK(worker.make_round());
  CHECK(seats.members->map().seats() == 3);
  CHECK_FALSE(worker.make_round());
  // Of two workers each has the weight 1/2, of three on a ring 1/3.
  CHECK(worker.sources(6) == GrowthRanks{1});
  CHECK(worker.plan.at(6)->row.self == Approx(1 / 2.0));
  CHECK(worker.sources(7) == GrowthRanks{1, 2});
  CHECK(worker.plan.at(7)->row.self == Approx(1 / 3.0));
}

TEST_CASE("the topology changes one round early, for what is published before the growth") {
  ScriptedSeats seats(2, 1, 0);
  GrowingWorker worker(2, seats);
  seats.settle(1, 7, 2);
  for (int round = 1; round < 6; ++round) worker.make_round();
  CHECK(worker.sources(7) == GrowthRanks{1});
  worker.make_round();
  CHECK(worker.sources(7) == GrowthRanks{1, 2});
}

TEST_CASE("a growth counts from the first combination of its round or later") {
  ScriptedSeats seats(2, 1, 0);
  WorkerOptions options;
  options.mix_every = 2;
  GrowingWorker worker(2, seats, options);
  seats.settle(1, 7, 2);
  for (int round = 1; round < 7; ++round) CHECK_FALSE(worker.make_round());
  CHECK(worker.make_round());
  // Combination 3 ends with round 8, which began after round 7 was made: ceil(7 / 2) = 4.
  CHECK(worker.sources(3) == GrowthRanks{1});
  CHECK(worker.sources(4) == GrowthRanks{1, 2});
}

TEST_CASE("a worker that has left out a growth's round has its topology from its own round on") {
  ScriptedSeats seats(2, 1, 0);
  GrowingWorker worker(2, seats);
  seats.settle(1, 7, 2);
  worker.progress.combinations = 25;
  worker.growth.prepare(5);
  CHECK(worker.sources(25) == GrowthRanks{1});
  worker.growth.prepare(24);
  CHECK(worker.sources(24) == GrowthRanks{1});
  CHECK(worker.sources(25) == GrowthRanks{1, 2});
}

TEST_CASE("a spare begins in a run that has grown by its round, or that will") {
  for (const std::int64_t rounds : {3, 9}) {
    ScriptedSeats seats(2, 2, 3);
    Scene scene(1, 2, stencil::ring());  // on the seat of worker 1
    seats.of(3).set_claim({.version = 1, .seat = 1, .phase = SeatClaim::Phase::seated});
    seats.settle(1, 7, 2);
    scene.progress.combinations = rounds;
    Growth growth(scene.context, ring_wiring(), scene.plan, seats.members);
    const bool has_grown = rounds > 7;
    CHECK(growth.begin(rounds) == (has_grown ? 1 : 0));
    CHECK(seats.members->map().seats() == (has_grown ? 3 : 2));
    CHECK(scene.plan.at(rounds)->edges.sources == (has_grown ? GrowthRanks{0, 2} : GrowthRanks{0}));
  }
}

TEST_CASE("workers cannot join every 0 rounds") {
  ScriptedSeats seats(2, 1, 0);
  GrowingWorker worker(2, seats);
  CHECK_THROWS_WITH(worker.growth.allow({.first = 0, .every = 0}),
                    ContainsSubstring("every 0 rounds; 1 or more are required"));
  CHECK_FALSE(seats.members->growth().is_allowed());
  worker.growth.allow({});
  CHECK(seats.members->growth().is_allowed());
}
