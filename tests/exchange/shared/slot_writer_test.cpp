// How SlotExchange publishes.
#include <fast/core/error.hpp>

#include "exchange/writer_and_reader.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;
using testing::WriterAndReader;

TEST_CASE("backpressure: a slot is acquired only after all readers of its rounds have read it") {
  WriterAndReader pair(0);
  for (std::int64_t round = 0; round < 3; ++round) pair.publish(round);
  CHECK_THROWS_WITH(pair.writer.acquire(), Catch::Matchers::Contains("waiting for a reader"));
  pair.reader.complete(1);
  CHECK_NOTHROW(pair.publish(3));
  CHECK_THROWS_AS(pair.writer.acquire(), Error);
}

TEST_CASE("above staleness 0 a writer never waits") {
  WriterAndReader pair(2);
  for (std::int64_t round = 0; round < 10; ++round) CHECK_NOTHROW(pair.publish(round));
  CHECK(pair.writer.published().data == pair.pair.board->payload(Pair::writer_rank, 10).data);
}

TEST_CASE("a publication without a payload before it is refused") {
  WriterAndReader pair(0);
  CHECK_THROWS_WITH(pair.writer.publish(0), Catch::Matchers::Contains("call acquire()"));
}
