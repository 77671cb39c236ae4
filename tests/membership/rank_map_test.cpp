#include "membership/rank_map.hpp"

#include "membership/hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::membership;
using fast::testing::Hall;
using ClaimPhase = SeatClaim::Phase;

TEST_CASE("the newest claim that was seated holds a seat, and the lower rank of equals") {
  Hall hall(2, 5);
  CHECK(hall.map.holder(1) == 1);
  hall.claim(3, 1, 1, ClaimPhase::claiming);
  CHECK(hall.map.holder(1) == 1);
  hall.claim(4, 1, 1, ClaimPhase::seated);
  CHECK(hall.map.holder(1) == 4);
  hall.claim(3, 1, 1, ClaimPhase::seated);
  CHECK(hall.map.holder(1) == 3);
  CHECK(hall.map.is_replaced(1));
  CHECK(hall.map.is_replaced(4));
  hall.claim(2, 1, 2, ClaimPhase::seated);
  CHECK(hall.map.holder(1) == 2);
  CHECK(hall.map.newest_version(1) == 2);
  CHECK(hall.map.taken() == std::vector<int>{1});
  hall.claim(2, 1, 2, ClaimPhase::vacated);
  CHECK(hall.map.holder(1) == 2);
  CHECK_FALSE(hall.map.takes_part(2));
  CHECK(hall.map.taken().empty());
}

TEST_CASE("a growth opens a seat when it is wanted, and has begun when a worker is in its round") {
  Hall hall(2, 4);
  hall.map.set_pace(3, 1);
  CHECK(hall.map.open_seats() == 2);
  CHECK(hall.map.furthest_round() == 0);
  hall.memory.growths_of(1).propose(2);
  CHECK(hall.map.open_seats() == 3);  // one after the other
  CHECK(hall.map.holder(2) == nobody);
  hall.claim(2, 2, 1, ClaimPhase::seated);
  hall.memory.growths_of(0).settle({1, 12});
  CHECK(hall.map.open_seats() == 4);
  CHECK(hall.map.begun_growths() == 0);
  hall.own[1].set_progress(3);  // combinations: 9 rounds
  CHECK(hall.map.furthest_round() == 9);
  CHECK(hall.map.begun_growths() == 0);
  hall.own[1].set_progress(4);
  CHECK(hall.map.begun_growths() == 1);
  CHECK(hall.map.past_growths() == 0);
  CHECK(hall.map.seats() == 2);
  hall.map.enter(1);
  CHECK(hall.map.seats() == 3);
  CHECK(hall.map.taken().empty());  // nobody was there before
}

TEST_CASE("a worker that dies while it republishes has made the rounds that it had made before") {
  Hall hall(2, 3);
  hall.map.set_pace(3, 1);
  const auto made = [&] { return hall.map.rounds(1); };
  hall.own[1].set_republished(1);  // before its first round
  CHECK(made() == 0);
  hall.own[1].set_progress(1);
  CHECK(made() == 0);
  hall.own[1].set_progress(2);
  CHECK(made() == 3);
  hall.own[1].set_republished(2);
  CHECK(made() == 3);
  hall.own[1].set_progress(3);
  CHECK(made() == 3);
  CHECK(hall.map.records().progress(1) == 3);
  CHECK(hall.map.most_republished() == 2);
}

TEST_CASE("several combinations in a round count as one round when all are made") {
  Hall hall(2, 3);
  hall.map.set_pace(3, 4);
  hall.own[1].set_progress(7);
  CHECK(hall.map.rounds(1) == 3);
  hall.own[1].set_progress(8);
  CHECK(hall.map.rounds(1) == 6);
}

TEST_CASE("without spares rank k is worker k") {
  const Hall hall(4, 4);
  CHECK(hall.map.holder(3) == 3);
  CHECK(hall.map.takes_part(3));
  CHECK(hall.map.workers_that([](int rank) { return rank % 2 == 1; }) == std::vector<int>{1, 3});
}

TEST_CASE("a spare answers for the worker whose seat it has; nobody for an open seat") {
  Hall hall(2, 5);
  const auto all = [](int) { return true; };
  CHECK(hall.map.workers_that(all) == std::vector<int>{0, 1});
  hall.claim(4, 1, 1, ClaimPhase::seated);
  CHECK(hall.map.workers_that([](int rank) { return rank == 4; }) == std::vector<int>{1});
  CHECK(hall.map.workers_that([](int rank) { return rank == 1; }).empty());
  CHECK(hall.map.number_of(4) == 1);
  CHECK(hall.map.number_of(3) == 3);
  CHECK_FALSE(hall.map.has_begun(4));
  hall.own[4].set_status(WorkerStatus::running);
  CHECK(hall.map.has_begun(4));

  hall.map.enter(1);  // a growth has opened seat 2, no spare has taken it yet
  CHECK(hall.map.holder(2) == nobody);
  CHECK(hall.map.workers_that(all) == std::vector<int>{0, 1});
  hall.claim(4, 1, 1, ClaimPhase::vacated);
  CHECK_FALSE(hall.map.has_begun(4));
}
