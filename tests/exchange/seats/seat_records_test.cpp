#include "exchange/seats/seat_records.hpp"

#include <array>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;

namespace {

struct Board {
  std::array<SeatRecord, 3> all{};
  SeatRecords of(int rank) { return {{&all[0], &all[1], &all[2]}, rank}; }
};

}  // namespace

TEST_CASE("memory of zeros is a run of ranks that have no claim and have not begun") {
  Board board;
  const SeatRecords records = board.of(0);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(records.claim(rank) == SeatClaim{});
    CHECK(records.status(rank) == WorkerStatus::starting);
    CHECK(records.progress(rank) == 0);
  }
}

TEST_CASE("a claim reads as it was written, and its word grows even when it is withdrawn") {
  Board board;
  SeatRecords records = board.of(2);
  records.set_claim({0, 7, 1'000'000, SeatClaim::Phase::seated});
  CHECK(records.claim(2) == SeatClaim{1, 7, 1'000'000, SeatClaim::Phase::seated});
  const std::uint64_t before = board.all[2].claim;
  records.set_claim({});
  CHECK(records.claim(2).phase == SeatClaim::Phase::none);
  CHECK(board.all[2].claim > before);
}

TEST_CASE("copies raise the words of ranks elsewhere, and never those of this host") {
  Board there, here;
  SeatRecords source = there.of(1);
  source.set_status(WorkerStatus::running);
  source.set_progress(40);
  source.set_republished(2);
  source.set_work({.began_in = 0});
  source.set_work({.made_up = 7});
  source.add_beat();
  there.of(0).set_progress(99);
  std::vector<std::uint64_t> words(3 * SeatRecord::words);
  source.copy_to(words);
  SeatRecords target = here.of(0);
  target.set_progress(5);
  target.take_over(words, {true, false, false});
  CHECK(target.progress(0) == 5);
  CHECK(target.progress(1) == 40);
  CHECK(target.republished(1) == 2);
  CHECK(target.work_of(1).began_in == 0);
  CHECK_FALSE(target.work_of(2).began_in.has_value());
  CHECK(target.work_of(1).made_up == 7);
  CHECK(target.status(1) == WorkerStatus::running);
  CHECK(target.beat(1) == 1);
  SeatRecords newer = here.of(1);
  newer.set_progress(50);
  target.take_over(words, {true, false, false});
  CHECK(target.progress(1) == 50);
}
