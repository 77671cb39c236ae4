#include "exchange/seats/seat_table.hpp"

#include "hall.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using fast::testing::Hall;
using ClaimPhase = SeatClaim::Phase;

TEST_CASE("the newest claim that was seated holds a seat, and the lower rank of equals") {
  Hall hall(2, 5);
  CHECK(hall.table->holder(1) == 1);
  hall.claim(3, 1, 1, ClaimPhase::claiming);
  CHECK(hall.table->holder(1) == 1);
  hall.claim(4, 1, 1, ClaimPhase::seated);
  CHECK(hall.table->holder(1) == 4);
  hall.claim(3, 1, 1, ClaimPhase::seated);
  CHECK(hall.table->holder(1) == 3);
  CHECK(hall.table->is_replaced(1));
  CHECK(hall.table->is_replaced(4));
  hall.claim(2, 1, 2, ClaimPhase::seated);
  CHECK(hall.table->holder(1) == 2);
  CHECK(hall.table->newest_version(1) == 2);
  CHECK(hall.table->taken() == std::vector<int>{1});
  hall.claim(2, 1, 2, ClaimPhase::vacated);
  CHECK(hall.table->holder(1) == 2);
  CHECK_FALSE(hall.table->takes_part(2));
  CHECK(hall.table->taken().empty());
}

TEST_CASE("a growth opens a seat when it is wanted, and has begun when a worker is in its round") {
  Hall hall(2, 4);
  hall.table->set_steps(3);
  CHECK(hall.table->open_seats() == 2);
  hall.own[1].want(2);
  CHECK(hall.table->open_seats() == 3);  // one after the other
  CHECK(hall.table->holder(2) == nobody);
  hall.claim(2, 2, 1, ClaimPhase::seated);
  hall.own[0].settle({1, 12});
  CHECK(hall.table->open_seats() == 4);
  CHECK(hall.table->begun_growths() == 0);
  hall.own[1].set_progress(3);  // combinations: 9 rounds
  CHECK(hall.table->furthest_round() == 9);
  CHECK(hall.table->begun_growths() == 0);
  hall.own[1].set_progress(4);
  CHECK(hall.table->begun_growths() == 1);
  CHECK(hall.table->past_growths() == 0);
  CHECK(hall.table->seats() == 2);
  hall.table->enter(1);
  CHECK(hall.table->seats() == 3);
  CHECK(hall.table->taken().empty());  // nobody was there before
}
