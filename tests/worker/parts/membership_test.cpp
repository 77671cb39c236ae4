#include "worker/membership.hpp"

#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"
#include "worker/parts/scripted_seats.hpp"

using namespace fast;
using testing::Scene;
using testing::ScriptedSeats;
using worker::Membership;
using worker::Publisher;

namespace {

using Statuses = std::vector<WorkerStatus>;

/// Worker 1 of three.
struct Member : Scene {
  explicit Member(std::shared_ptr<exchange::SeatKeeper> seats = nullptr, WorkerOptions options = {})
      : Scene(1, 3, stencil::ring(), std::move(options)),
        publisher(context),
        membership(context, peers, std::move(seats)) {}
  Publisher publisher;
  Membership membership;
};

}  // namespace

TEST_CASE("a worker that finishes publishes its weights once, and does not count as gone") {
  Member member;
  CHECK(member.membership.keeps_seat());
  member.x.assign(Scene::count, 8);
  member.membership.finish(member.publisher);
  member.membership.finish(member.publisher);
  CHECK(member.exchange.rounds == std::vector<std::int64_t>{worker::no_round});
  CHECK(member.exchange.newest().values == member.x);
  CHECK(member.peers->announced == Statuses{WorkerStatus::finished});
  CHECK(member.membership.has_ended());
  CHECK(member.membership.is_active());
}

TEST_CASE("a worker that leaves publishes nothing more, and reports its own errors") {
  Member member;
  member.membership.leave();
  CHECK(member.exchange.rounds.empty());
  CHECK(member.peers->announced == Statuses{WorkerStatus::left});
  CHECK_FALSE(member.membership.keeps_seat());
  CHECK(member.membership.abandon());
  CHECK(member.peers->announced == Statuses{WorkerStatus::left});
}

TEST_CASE("a worker that has finished reports its own errors, and every error once") {
  for (const bool is_first : {true, false}) {
    Member member;
    member.peers->fails_first = is_first;
    member.membership.finish(member.publisher);
    CHECK(member.membership.abandon() == is_first);
    CHECK_FALSE(member.membership.abandon());
    CHECK(member.membership.is_active());
  }
}

TEST_CASE("a worker cannot leave a rule that averages over all workers") {
  WorkerOptions options;
  options.algorithm = algorithm::allreduce();
  Member member(nullptr, options);
  CHECK_THROWS_WITH(member.membership.leave(), ContainsSubstring("stop the run and resume it"));
  CHECK(member.membership.is_active());
}

TEST_CASE("the first worker that fails reports it") {
  for (const bool is_first : {true, false}) {
    Member member;
    member.peers->fails_first = is_first;
    CHECK(member.membership.abandon() == is_first);
    CHECK(member.peers->announced == Statuses{WorkerStatus::failed});
    CHECK_FALSE(member.membership.abandon());
  }
}

TEST_CASE("a worker whose seat a spare has taken ends with a warning") {
  ScriptedSeats seats(3, 1, 1);
  Member member(seats.keeper);
  CHECK(member.membership.keeps_seat());
  seats.of(3).set_claim({.version = 1, .seat = 1, .phase = exchange::SeatClaim::Phase::seated});
  CHECK_FALSE(member.membership.keeps_seat());
  CHECK_FALSE(member.membership.keeps_seat());
  CHECK_FALSE(member.membership.is_active());
  CHECK(member.membership.has_ended());
  CHECK(member.peers->announced == Statuses{WorkerStatus::finished});
  REQUIRE(member.said.size() == 1);
  CHECK(member.said[0].find("a spare has taken its seat") != std::string::npos);
}
