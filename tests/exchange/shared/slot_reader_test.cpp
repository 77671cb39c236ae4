#include "exchange/shared/slot_reader.hpp"

#include <fast/core/error.hpp>

#include "exchange/writer_and_reader.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::WriterAndReader;

TEST_CASE("at staleness 0 a reader finds exactly its round, above 0 the newest that is recent") {
  WriterAndReader exact(0), recent(2);
  for (std::int64_t round = 0; round < 3; ++round) {
    exact.publish(round);
    recent.publish(round);
  }
  CHECK(exact.fetch(1).sequence == 2);
  CHECK(exact.fetch(1).round == 1);
  CHECK(recent.fetch(1).sequence == 3);
  CHECK(recent.fetch(4).round == 2);
  CHECK_THROWS_AS(recent.fetch(5), Error);  // a round that is 3 rounds old does not do
}

TEST_CASE("above staleness 0 a payload is fresh once") {
  WriterAndReader pair(unbounded_staleness);
  pair.publish(0);
  CHECK(pair.fetch(0).fresh);
  CHECK_FALSE(pair.fetch(1).fresh);
  pair.writer_peers.announce(WorkerStatus::finished);
  CHECK(pair.fetch(2).state == Arrival::State::finished);
  pair.publish(1);
  CHECK(pair.fetch(3).state == Arrival::State::present);
}

TEST_CASE("a read is intact until its slot may have been written again") {
  for (const std::int64_t staleness : {std::int64_t{1}, unbounded_staleness}) {
    WriterAndReader pair(staleness);
    pair.publish(0);
    const Arrival arrival = pair.fetch(0);
    pair.publish(1);
    CHECK(pair.reader.is_intact(arrival));
    pair.publish(2);
    CHECK_FALSE(pair.reader.is_intact(arrival));
  }
}
