#include "worker/participation.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/parts/scripted_seats.hpp"

using namespace fast;
using testing::Scene;
using testing::ScriptedSeats;
using worker::Participation;
using worker::Publisher;

namespace {

using Statuses = std::vector<WorkerStatus>;

/// Worker 1 of three.
struct Member : Scene {
  explicit Member(std::shared_ptr<membership::Members> seats = nullptr, WorkerOptions options = {})
      : Scene(1, 3, stencil::ring(), std::move(options)),
        publisher(context),
        participation(context, peers, std::move(seats)) {}
  Publisher publisher;
  Participation participation;
};

}  // namespace

TEST_CASE("a worker that finishes publishes its weights once, and does not count as gone") {
  Member member;
  CHECK(member.participation.keeps_seat());
  member.x.assign(Scene::count, 8);
  member.participation.finish(member.publisher);
  member.participation.finish(member.publisher);
  CHECK(member.exchange.rounds == std::vector<std::int64_t>{worker::no_round});
  CHECK(member.exchange.newest().values == member.x);
  CHECK(member.peers->announced == Statuses{WorkerStatus::finished});
  CHECK(member.participation.has_ended());
  CHECK(member.participation.is_active());
}

TEST_CASE("a worker that leaves publishes nothing more, and reports its own errors") {
  Member member;
  member.participation.leave();
  CHECK(member.exchange.rounds.empty());
  CHECK(member.peers->announced == Statuses{WorkerStatus::left});
  CHECK_FALSE(member.participation.keeps_seat());
  CHECK(member.participation.abandon());
  CHECK(member.peers->announced == Statuses{WorkerStatus::left});
}

TEST_CASE("a worker that has finished reports its own errors, and every error once") {
  for (const bool is_first : {true, false}) {
    Member member;
    member.peers->fails_first = is_first;
    member.participation.finish(member.publisher);
    CHECK(member.participation.abandon() == is_first);
    CHECK_FALSE(member.participation.abandon());
    CHECK(member.participation.is_active());
  }
}

TEST_CASE("a worker cannot leave a rule that averages over all workers") {
  WorkerOptions options;
  options.algorithm = algorithm::allreduce();
  Member member(nullptr, options);
  CHECK_THROWS_WITH(member.participation.leave(), ContainsSubstring("stop the run and resume it"));
  CHECK(member.participation.is_active());
}

TEST_CASE("the first worker that fails reports it") {
  for (const bool is_first : {true, false}) {
    Member member;
    member.peers->fails_first = is_first;
    CHECK(member.participation.abandon() == is_first);
    CHECK(member.peers->announced == Statuses{WorkerStatus::failed});
    CHECK_FALSE(member.participation.abandon());
  }
}

TEST_CASE("a worker whose seat a spare has taken ends with a warning") {
  ScriptedSeats seats(3, 1, 1);
  Member member(seats.members);
  CHECK(member.participation.keeps_seat());
  seats.of(3).set_claim({.version = 1, .seat = 1, .phase = membership::SeatClaim::Phase::seated});
  CHECK_FALSE(member.participation.keeps_seat());
  CHECK_FALSE(member.participation.keeps_seat());
  CHECK_FALSE(member.participation.is_active());
  CHECK(member.participation.has_ended());
  CHECK(member.peers->announced == Statuses{WorkerStatus::finished});
  REQUIRE(member.said.size() == 1);
  CHECK(member.said[0].find("a spare has taken its seat") != std::string::npos);
}
