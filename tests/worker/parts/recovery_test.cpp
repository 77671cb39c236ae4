#include "worker/recovery.hpp"

#include <cmath>
#include <fast/topology/stencil.hpp>
#include <limits>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;
using worker::ModelReader;
using worker::Publisher;
using worker::Recovery;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

/// The run does not grow.
int stays(std::int64_t) { return 0; }

struct Patient : Scene {
  explicit Patient(WorkerOptions options = {})
      : Scene(1, 3, stencil::ring(), std::move(options)),
        reader(exchange, peers, mixer, setting.shape),
        recovery(context, *peers, plan, reader),
        publisher(context) {
    for (const std::size_t worker : {0, 2}) {
      peers->states[worker].sequence = 9;
      peers->weights[worker] = Values(count, static_cast<double>(10 * worker));
    }
  }
  ModelReader reader;
  Recovery recovery;
  Publisher publisher;
};

}  // namespace

TEST_CASE("a worker that was left behind goes on from its neighbors' average and round") {
  WorkerOptions options;
  options.mix_every = 2;
  Patient patient(options);
  patient.progress.combinations = 4;
  patient.progress.stats.rounds = 9;
  patient.peers->states[0].progress = 20;
  patient.peers->states[2].progress = 20;
  patient.recovery.rejoin(patient.publisher, 20, stays);
  CHECK(patient.x == Values(Scene::count, 10));
  CHECK(patient.exchange.rounds.back() == 20);
  CHECK(patient.exchange.completed == 20);
  // The caller counts the round that it is in.
  CHECK(patient.progress.combinations + 1 == 20);
  CHECK(patient.progress.stats.rounds + 1 == 9 + 16 * 2);
  CHECK(patient.progress.stats.rejoined == 1);
  CHECK(patient.said.size() == 1);
}

TEST_CASE("neighbors that are further back, or not finite, are not adopted") {
  WorkerOptions options;
  options.deadline = Seconds(0.1);
  Patient patient(options);
  patient.progress.combinations = 4;
  patient.peers->states[0].progress = 3;
  patient.peers->states[2].progress = 8;
  patient.recovery.rejoin(patient.publisher, 8, stays);
  CHECK(patient.x == Values(Scene::count, 20));
  patient.peers->weights[2] = Values(Scene::count, not_a_number);
  CHECK_THROWS_WITH(patient.recovery.rejoin(patient.publisher, 9, stays),
                    ContainsSubstring("finds no neighbor whose weights it could adopt"));
}

TEST_CASE("weights that are not finite are replaced by the last publication, else by neighbors'") {
  int told = 0;
  WorkerOptions options;
  options.on_healed = [&] { ++told; };
  Patient patient(options);
  patient.peers->weights[1] = Values(Scene::count, 7);  // this worker's own publication
  patient.recovery.heal();
  CHECK(patient.x == Values(Scene::count, 1));  // all is well
  CHECK(told == 0);
  patient.x[3] = not_a_number;
  patient.recovery.heal();
  CHECK(patient.x == Values(Scene::count, 7));
  patient.peers->weights[1] = Values(Scene::count, HUGE_VAL);
  patient.x[0] = HUGE_VAL;
  patient.recovery.heal();
  CHECK(patient.x == Values(Scene::count, 10));
  CHECK(told == 2);
  CHECK(patient.progress.stats.healed == 2);
}

TEST_CASE("a loss that is not finite leaves the step out once") {
  Patient patient;
  patient.peers->weights[1] = Values(Scene::count, 7);
  patient.recovery.note_bad_loss();
  patient.recovery.heal();
  CHECK(patient.x == Values(Scene::count, 7));
  patient.x.assign(Scene::count, 3);
  patient.recovery.heal();
  CHECK(patient.x == Values(Scene::count, 3));
}

TEST_CASE("a run in which nobody's weights are finite ends") {
  Patient patient;
  for (auto& weights : patient.peers->weights) weights = Values(Scene::count, not_a_number);
  patient.x[0] = not_a_number;
  CHECK_THROWS_WITH(patient.recovery.heal(), ContainsSubstring("nor are its neighbors'"));
}

TEST_CASE("a spare takes a seat with the average of the living neighbors, in the furthest round") {
  WorkerOptions options;
  options.mix_every = 2;
  Patient patient(options);
  patient.peers->states[0].progress = 20;
  patient.peers->states[2].progress = 22;
  patient.recovery.take_seat(patient.publisher, {.seat = 1, .version = 1, .rounds = 34}, stays);
  CHECK(patient.x == Values(Scene::count, 10));
  CHECK(patient.exchange.rounds.back() == 22);
  CHECK(patient.exchange.completed == 22);
  CHECK(patient.progress.combinations == 22);
  CHECK(patient.progress.stats.rounds == 44);
  CHECK(patient.progress.stats.joined_at == 44);
  CHECK(patient.progress.stats.predecessor_rounds == 34);
}

TEST_CASE("a worker joins in its growth's round at staleness 0, though neighbors are further") {
  WorkerOptions options;
  options.mix_every = 2;
  Patient patient(options);
  for (const std::size_t worker : {0, 2}) patient.peers->states[worker].progress = 21;
  patient.recovery.join(patient.publisher, {.seat = 1, .version = 1, .rounds = 0, .growth = 1}, 39,
                        stays);
  CHECK(patient.x == Values(Scene::count, 10));
  CHECK(patient.exchange.rounds.back() == 20);
  CHECK(patient.progress.combinations == 20);
  CHECK(patient.progress.stats.rounds == 40);
  CHECK(patient.progress.stats.predecessor_rounds == 39);  // one step is left out
}

TEST_CASE("combinations that no round has made do not count as rounds of a spare") {
  WorkerOptions options;
  options.mix_every = 2;
  for (const bool joins : {false, true}) {
    Patient patient(options);
    patient.progress.republished = 1;
    for (const std::size_t worker : {0, 2}) patient.peers->states[worker].progress = 21;
    const membership::SeatOffer offer{.seat = 1, .version = 1, .rounds = 0, .growth = 1};
    joins ? patient.recovery.join(patient.publisher, offer, 40, stays)
          : patient.recovery.take_seat(patient.publisher, offer, stays);
    CHECK(patient.progress.combinations == 21);
    CHECK(patient.progress.stats.rounds == 40);
  }
}

TEST_CASE("a worker joins in its neighbors' round above staleness 0") {
  WorkerOptions options;
  options.staleness = 3;
  Patient patient(options);
  for (const std::size_t worker : {0, 2}) patient.peers->states[worker].progress = 21;
  patient.recovery.join(patient.publisher, {.seat = 1, .version = 1, .rounds = 0, .growth = 1}, 20,
                        stays);
  CHECK(patient.progress.combinations == 21);
  CHECK(patient.progress.stats.predecessor_rounds == 20);
}

TEST_CASE("a spare adopts neighbors that have finished, and none that are gone") {
  Patient patient;
  patient.peers->states[0].status = WorkerStatus::finished;
  patient.peers->states[0].progress = 30;
  patient.peers->states[2].progress = 40;
  patient.peers->suspects = {2};
  patient.recovery.take_seat(patient.publisher, {.seat = 1, .version = 1, .rounds = 17}, stays);
  CHECK(patient.x == Values(Scene::count, 0));
  CHECK(patient.progress.combinations == 30);
}

TEST_CASE("the epoch of a spare is newer than those that workers reach by counting") {
  WorkerOptions options;
  options.algorithm = algorithm::push_sum();
  Patient patient(options);
  patient.mixer.restart(1000);
  patient.recovery.take_seat(patient.publisher, {.seat = 1, .version = 1, .rounds = 0}, stays);
  const double first = patient.mixer.scalars().epoch();
  CHECK(first > 1000);
  patient.recovery.take_seat(patient.publisher, {.seat = 1, .version = 2, .rounds = 0}, stays);
  CHECK(patient.mixer.scalars().epoch() > first + 1000);
}

TEST_CASE("a spare that finds no weights takes no seat") {
  WorkerOptions options;
  options.deadline = Seconds(0.1);
  Patient patient(options);
  patient.peers->suspects = {0, 2};
  CHECK_THROWS_WITH(
      patient.recovery.take_seat(patient.publisher, {.seat = 1, .version = 1, .rounds = 0}, stays),
      Catch::Contains("no worker whose weights"));
}
