#include "worker/start/worker_start.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/parts/scripted_seats.hpp"

using namespace fast;
using membership::SeatClaim;
using testing::Scene;
using testing::ScriptedSeats;
using worker::Entered;
using worker::WorkerStart;

namespace {

using Announced = std::vector<WorkerStatus>;

/// A worker on a ring, whose weights are its rank at first. The others have published ten times
/// theirs.
struct Beginner : Scene {
  Beginner(int rank, int size, std::shared_ptr<membership::Members> seats,
           WorkerOptions options = {})
      : Scene(rank, size, stencil::ring(), std::move(options)),
        reader(exchange, peers, mixer, setting.shape),
        recovery(context, *peers, plan, reader),
        publisher(context),
        entry(context, *peers, std::move(seats), publisher, reader, recovery) {
    for (std::size_t worker = 0; worker < peers->states.size(); ++worker) {
      peers->states[worker].sequence = 9;
      peers->states[worker].progress = 20;
      peers->weights[worker] = std::vector<double>(count, static_cast<double>(10 * worker));
    }
  }
  worker::ModelReader reader;
  worker::Recovery recovery;
  worker::Publisher publisher;
  WorkerStart entry;
};

int is_known(std::int64_t) { return 0; }

/// A spare on rank 3 is to join three workers.
membership::SeatOffer offer_to_join(ScriptedSeats& seats) {
  seats.want();
  const auto offer = seats.members->wait_for_seat([] {});
  REQUIRE(offer);
  CHECK(offer->seat == 3);
  CHECK(offer->growth == 1);
  return *offer;
}

}  // namespace

TEST_CASE("workers begin with worker 0's weights, or with their own") {
  for (const Initial initial : {Initial::broadcast, Initial::as_is}) {
    WorkerOptions options;
    options.initial = initial;
    Beginner beginner(1, 3, nullptr, options);
    beginner.peers->weights[0] = std::vector<double>(Scene::count, 4);
    beginner.entry.begin();
    const double expected = initial == Initial::broadcast ? 4 : 1;
    CHECK(beginner.x == std::vector<double>(Scene::count, expected));
    CHECK(beginner.exchange.newest().values == beginner.x);
    CHECK(beginner.exchange.rounds == std::vector<std::int64_t>{0});
    CHECK(beginner.peers->announced == Announced{WorkerStatus::running});
  }
}

TEST_CASE("a spare joins in its growth's round with its neighbors' average") {
  ScriptedSeats seats(3, 1, 3);
  const membership::SeatOffer offer = offer_to_join(seats);
  seats.settle(1, 7);
  seats.of(0).set_progress(7);
  Beginner beginner(3, 4, seats.members);
  CHECK(beginner.entry.take_seat(offer, is_known) == Entered::trains);
  CHECK(beginner.x == std::vector<double>(Scene::count, (0 + 20) / 2.0));  // of workers 0 and 2
  CHECK(beginner.exchange.rounds.back() == 7);
  CHECK(beginner.progress.stats.rounds == 7);
  CHECK(beginner.peers->announced == Announced{WorkerStatus::running});
  CHECK(seats.of(3).status(3) == WorkerStatus::running);
  CHECK(seats.of(3).work_of(3).began_in == 7);
  REQUIRE(beginner.said.size() == 1);
  CHECK(beginner.said[0] == "worker 3: joins in round 7; the workers are 4 now");
}

TEST_CASE("a spare whose seat another one has taken does not train") {
  ScriptedSeats seats(3, 2, 3);
  const membership::SeatOffer offer = offer_to_join(seats);
  seats.of(4).set_claim({.version = 2, .seat = 3, .phase = SeatClaim::Phase::seated});
  Beginner beginner(3, 4, seats.members);
  CHECK(beginner.entry.take_seat(offer, is_known) == Entered::seat_taken);
  CHECK(beginner.exchange.rounds.empty());
  CHECK(beginner.peers->announced.empty());
}

TEST_CASE("a spare is not needed when training ends before its growth") {
  ScriptedSeats seats(3, 1, 3);
  const membership::SeatOffer offer = offer_to_join(seats);
  for (const int worker : {0, 1, 2}) seats.of(worker).set_status(WorkerStatus::finished);
  Beginner beginner(3, 4, seats.members);
  CHECK(beginner.entry.take_seat(offer, is_known) == Entered::not_needed);
  CHECK(beginner.exchange.rounds.empty());
}
