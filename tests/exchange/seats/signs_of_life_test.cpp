#include "exchange/seats/signs_of_life.hpp"

#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;

namespace {

struct Watched {
  SeatRecords of(int rank) {
    std::vector<SeatRecord*> records;
    for (SeatRecord& record : memory) records.push_back(&record);
    return {records, rank};
  }
  std::vector<SeatRecord> memory = std::vector<SeatRecord>(4);
  SeatTable table{of(0), 3};
  SignsOfLife signs{table, 1.0};
};

}  // namespace

TEST_CASE("a rank whose beat stands still is gone, and comes back with the next beat") {
  Watched run;
  run.signs.look(0.9, {});
  CHECK_FALSE(run.signs.is_gone(1));
  run.of(2).add_beat();
  run.signs.look(0.2, {});
  CHECK(run.signs.is_gone(1));
  CHECK_FALSE(run.signs.is_gone(2));
  CHECK_FALSE(run.signs.is_gone(0));  // itself
  CHECK(run.signs.any_is_lost());
  run.of(1).add_beat();
  run.signs.look_again();
  CHECK_FALSE(run.signs.is_gone(1));
  CHECK(run.signs.time_s() == Approx(1.1));
}

TEST_CASE("deaths that the launcher reports count at once, also when it is asked again") {
  Watched run;
  run.signs.look(0.1, {2});
  CHECK(run.signs.is_gone(2));
  run.signs.look_again();
  CHECK(run.signs.is_gone(2));
  CHECK(run.signs.any_is_lost());
  run.of(2).set_status(WorkerStatus::finished);
  CHECK_FALSE(run.signs.any_is_lost());  // it had finished before
}

TEST_CASE("a spare that has left its seat is gone") {
  Watched run;
  run.of(3).set_claim({0, 1, 1, SeatClaim::Phase::seated});
  run.signs.look(0.1, {});
  CHECK_FALSE(run.signs.is_gone(3));
  run.of(3).set_claim({0, 1, 1, SeatClaim::Phase::vacated});
  run.signs.look(0.1, {});
  CHECK(run.signs.is_gone(3));
}
