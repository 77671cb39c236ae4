#include "exchange/shared/slot_writer.hpp"

#include <fast/core/error.hpp>

#include "exchange/pair.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "exchange/shared/slot_reader.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

/// Both ends of a pair, each with the part of the protocol that it needs.
struct WriterAndReader {
  explicit WriterAndReader(std::int64_t staleness) : bound(staleness) {}

  static ExchangeOptions quick() {
    ExchangeOptions options;
    options.deadline = Seconds(0.3);
    return options;
  }

  std::int64_t bound;
  Pair pair{64};
  SlotPeers writer_peers{pair.heartbeat(Pair::writer_rank)};
  SlotPeers reader_peers{pair.heartbeat(Pair::reader_rank)};
  PeerWaiter writer_waits{pair.heartbeat(Pair::writer_rank), quick()};
  PeerWaiter reader_waits{pair.heartbeat(Pair::reader_rank), quick()};
  SlotWriter writer{pair.board, Pair::writer_rank,
                    [](std::int64_t) {
                      return RoundEdges{{}, {Pair::reader_rank}};
                    },
                    writer_waits, bound == 0};
  SlotReader reader{pair.board, Pair::reader_rank,
                    [](std::int64_t) {
                      return RoundEdges{{Pair::writer_rank}, {}};
                    },
                    reader_waits, bound};

  void publish(std::int64_t round) {
    writer.acquire();
    writer.publish(round, false);
  }
  Arrival fetch(std::int64_t round) { return reader.fetch(round, false).front(); }
};

}  // namespace

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
  CHECK_THROWS_WITH(pair.writer.publish(0, false), Catch::Matchers::Contains("call acquire()"));
}

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
