#include "exchange/seats/seat_table.hpp"

#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using ClaimPhase = SeatClaim::Phase;

namespace {

/// Rank 0's table of a run with so many founders; ranks may write to their records.
struct Hall {
  Hall(int founders, int ranks) : memory(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) own.emplace_back(all(), rank);
    table.emplace(SeatRecords(all(), 0), founders);
  }
  std::vector<SeatRecord*> all() {
    std::vector<SeatRecord*> records;
    for (SeatRecord& record : memory) records.push_back(&record);
    return records;
  }
  void claim(int spare, int seat, std::uint64_t version, ClaimPhase phase) {
    own[static_cast<std::size_t>(spare)].set_claim({0, version, seat, phase});
  }
  std::vector<SeatRecord> memory;
  std::vector<SeatRecords> own;
  std::optional<SeatTable> table;
};

}  // namespace

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

TEST_CASE("what was left out before the last holder is known until spares have made up for it") {
  Hall hall(2, 6);
  const auto begin = [&](int spare, std::uint64_t version, std::int64_t round) {
    hall.own[static_cast<std::size_t>(spare)].set_began_in(round);
    hall.claim(spare, 1, version, ClaimPhase::seated);
  };
  hall.own[1].set_progress(10);
  CHECK(hall.table->left_out_before(1).empty());
  begin(2, 1, 15);  // 10 to 14 are left out
  CHECK(hall.table->left_out_before(1).empty());
  hall.own[2].set_made_up(3);
  hall.own[2].set_progress(20);
  begin(3, 2, 22);  // and 20, 21
  CHECK(hall.table->left_out_before(1) == std::vector<RoundSpan>{{13, 15}});
  hall.own[3].set_made_up(1);
  hall.own[3].set_progress(30);
  begin(4, 3, 33);
  CHECK(hall.table->left_out_before(1) == std::vector<RoundSpan>{{14, 15}, {20, 22}});
  hall.own[4].set_made_up(6);  // all, and 3 of those from 30 on
  hall.own[4].set_progress(33);
  begin(5, 4, 40);
  CHECK(hall.table->left_out_before(1).empty());
}

TEST_CASE("a spare that was lost before it began has left nothing out") {
  Hall hall(2, 5);
  hall.claim(2, 2, 1, ClaimPhase::seated);  // of a growth
  hall.own[3].set_began_in(8);
  hall.claim(3, 2, 2, ClaimPhase::seated);
  hall.own[3].set_progress(9);
  hall.own[4].set_began_in(12);
  hall.claim(4, 2, 3, ClaimPhase::seated);
  CHECK(hall.table->left_out_before(2).empty());  // 9 to 11 are of the last holder but one
}
