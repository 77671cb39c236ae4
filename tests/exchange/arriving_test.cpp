// A mirror that is read while it is written: payloads on their way from another host.
#include <fast/core/error.hpp>

#include <thread>

#include "exchange/pair.hpp"
#include "exchange/remote/replicator.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

constexpr std::size_t bytes = std::size_t{3} << 20, part = std::size_t{1} << 20;

struct Mirrored {
  Pair pair{bytes};
  MirrorWriter mirror{*pair.board, Pair::writer_rank};
  SlotExchange reader = pair.end(Pair::reader_rank, testing::staleness(0));
  std::size_t head = SlotLayout(pair.shape).data_offset();

  void bring(std::byte* slot, std::size_t from, std::size_t up_to, int value) {
    std::memset(slot + head + from, value, up_to - from);
    mirror.arrived(head + up_to);
  }
};

}  // namespace

TEST_CASE("a payload is read part by part while it comes") {
  Mirrored host;
  std::byte* slot = host.mirror.begin(0, 2);
  host.bring(slot, 0, part, 7);
  Arrival arrival = host.reader.fetch_early(1).front();
  CHECK(arrival.state == Arrival::State::present);
  CHECK(arrival.arriving != 0);
  CHECK(arrival.fresh);
  CHECK(host.reader.await(arrival, part));
  CHECK(testing::whole(arrival.payload.data, part));
  std::thread rest([&] {
    host.bring(slot, part, 2 * part, 7);
    host.bring(slot, 2 * part, bytes, 7);
    host.mirror.publish(0, 2);
  });
  CHECK(host.reader.await(arrival, 2 * part));
  CHECK(testing::whole(arrival.payload.data, 2 * part));
  CHECK(host.reader.await(arrival, whole_payload));
  rest.join();
  CHECK(arrival.arriving == 0);
  CHECK(testing::whole(arrival.payload.data, bytes));
  CHECK(host.reader.is_intact(arrival));
}

TEST_CASE("a payload that starts again is not taken for the one before") {
  Mirrored host;
  host.bring(host.mirror.begin(0, 0), 0, bytes, 1);
  Arrival arrival = host.reader.fetch_early(0).front();
  CHECK(host.reader.await(arrival, bytes));
  host.bring(host.mirror.begin(0, 0), 0, bytes, 2);  // the first one was overwritten
  CHECK_FALSE(host.reader.await(arrival, bytes));
  CHECK_FALSE(host.reader.await(arrival, whole_payload));
  host.mirror.publish(0, 0);
  arrival = host.reader.fetch(0).front();
  CHECK(arrival.arriving == 0);
  CHECK(arrival.payload.data[bytes - 1] == std::byte{2});
}

TEST_CASE("what comes is for its rounds alone, and only for those who ask early") {
  Pair pair(bytes);
  MirrorWriter mirror(*pair.board, Pair::writer_rank);
  const SlotPeers waiting(pair.heartbeat(Pair::reader_rank)),
      alive(pair.heartbeat(Pair::writer_rank));
  ExchangeOptions impatient = testing::staleness(0);
  impatient.deadline = Seconds(0.05);
  SlotExchange reader = pair.end(Pair::reader_rank, impatient);
  mirror.begin(3, 4);
  CHECK_THROWS_AS(reader.fetch_early(2), Error);
  CHECK_THROWS_AS(reader.fetch(3), Error);
  CHECK(reader.fetch_early(4).front().arriving != 0);
  mirror.begin();  // of unknown rounds
  CHECK_THROWS_AS(reader.fetch_early(4), Error);
}
