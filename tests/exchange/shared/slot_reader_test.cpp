// How SlotExchange reads.
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

namespace {

/// Two workers that read each other, and where worker 0 has gone on without worker 1.
struct BothWays : WriterAndReader {
  using WriterAndReader::WriterAndReader;
  static RoundEdges both(std::int64_t /*round*/) { return {{0}, {0}}; }
  SlotExchange other{pair.heartbeat(testing::Pair::reader_rank), both, quick()};

  /// The payload does not matter.
  void publish_other(std::int64_t round) {
    if (other.sequence() == 0) other.acquire();
    other.publish(round);
  }
  /// Worker 0 has made all rounds below that.
  void complete(std::int64_t rounds) const {
    acknowledge(pair.board->header(testing::Pair::writer_rank).reading.consumed, rounds);
  }
  Arrival::State state_in(std::int64_t round) {
    publish_other(round);
    return other.fetch(round).front().state;
  }
};

}  // namespace

TEST_CASE("a publication of a round that was completed without the reader does not count") {
  BothWays pair(0);
  for (std::int64_t round = 0; round < 3; ++round) pair.publish(round);
  pair.complete(1);
  CHECK(pair.state_in(0) == Arrival::State::missed);
  CHECK(pair.state_in(1) == Arrival::State::present);
  pair.complete(3);  // both workers have made round 1
  CHECK(pair.state_in(2) == Arrival::State::missed);
}

TEST_CASE("a neighbor that completes the round after this worker's publication takes part in it") {
  BothWays pair(0);
  pair.publish(0);
  pair.publish(1);
  pair.publish_other(0);
  pair.complete(1);
  CHECK(pair.other.fetch(0).front().state == Arrival::State::present);
  CHECK(pair.other.look(0, 0) == Arrival::State::present);
  pair.complete(2);
  pair.publish_other(1);
  CHECK(pair.other.fetch(1).front().state == Arrival::State::missed);
}

TEST_CASE("a source that does not read this worker may be ahead of it") {
  WriterAndReader pair(0);
  for (std::int64_t round = 0; round < 3; ++round) pair.publish(round);
  acknowledge(pair.pair.board->header(testing::Pair::writer_rank).reading.consumed, 3);
  for (std::int64_t round = 0; round < 3; ++round) {
    pair.reader.acquire();
    pair.reader.publish(round);
    CHECK(pair.fetch(round).state == Arrival::State::present);
  }
}

TEST_CASE("a reader that has left this worker out and has finished takes no part any more") {
  BothWays pair(0);
  pair.complete(5);
  pair.writer_peers.announce(WorkerStatus::finished);
  pair.publish_other(3);
  CHECK(pair.other.look(0, 3) == Arrival::State::finished);
  pair.complete(3);
  pair.publish_other(3);
  pair.complete(4);
  CHECK(pair.other.look(0, 3) == Arrival::State::present);
}

TEST_CASE("above staleness 0 publications do not count that were made too far ahead") {
  BothWays pair(2);
  pair.publish(10);
  pair.complete(10);  // round 9 needs a publication of round 7 or later
  CHECK(pair.state_in(6) == Arrival::State::missed);
  CHECK(pair.state_in(7) == Arrival::State::missed);  // it was left out before
  pair.publish(11);
  CHECK(pair.state_in(7) == Arrival::State::present);
  pair.publish(12);
  pair.complete(12);
  pair.writer_peers.announce(WorkerStatus::finished);
  CHECK(pair.state_in(8) == Arrival::State::missed);
  CHECK(pair.state_in(9) == Arrival::State::finished);
}

TEST_CASE("without a bound of staleness every publication counts") {
  BothWays pair(unbounded_staleness);
  pair.publish(1000);
  pair.complete(1000);
  CHECK(pair.state_in(0) == Arrival::State::present);
}
