#include "train/control/ranks_of_workers.hpp"

#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using namespace fast::train;

TEST_CASE("without spares rank k is worker k") {
  const RanksOfWorkers ranks(nullptr, 4);
  CHECK(ranks.rank_of(3) == 3u);
  CHECK(ranks.is_on_seat(3));
  CHECK(ranks.workers_that([](std::size_t rank) { return rank % 2 == 1; }) ==
        std::vector<int>{1, 3});
}

TEST_CASE("a spare answers for the worker whose seat it has; nobody for an open seat") {
  std::vector<SeatRecord> memory(5);
  std::vector<SeatRecord*> records;
  for (SeatRecord& record : memory) records.push_back(&record);
  const auto table = std::make_shared<SeatTable>(SeatRecords(records, 0), 2);
  const RanksOfWorkers ranks(table, 5);
  CHECK(ranks.workers_that([](std::size_t) { return true; }) == std::vector<int>{0, 1});

  SeatRecords(records, 4).set_claim({0, 1, 1, SeatClaim::Phase::seated});
  CHECK(ranks.rank_of(1) == 4u);
  CHECK(ranks.is_on_seat(4));
  CHECK_FALSE(ranks.is_on_seat(3));
  CHECK(ranks.workers_that([](std::size_t rank) { return rank == 4; }) == std::vector<int>{1});
  CHECK(ranks.workers_that([](std::size_t rank) { return rank == 1; }).empty());

  table->enter(1);  // a growth has opened seat 2, no spare has taken it yet
  CHECK_FALSE(ranks.rank_of(2).has_value());
  CHECK(ranks.workers_that([](std::size_t) { return true; }) == std::vector<int>{0, 1});

  SeatRecords(records, 4).set_claim({0, 1, 1, SeatClaim::Phase::vacated});
  CHECK(ranks.rank_of(1) == 4u);
  CHECK_FALSE(ranks.is_on_seat(4));
}
