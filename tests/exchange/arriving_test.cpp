// A mirror that is read while it is written: payloads on their way from another host.
#include <sys/mman.h>

#include <fast/core/error.hpp>

#include <optional>
#include <thread>

#include "exchange/pair.hpp"
#include "exchange/remote/replicator.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"
#include "support/data_memory.hpp"

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

namespace {

/// The mirror of one worker, of whose header alone there is memory.
struct Reserved {
  PayloadShape shape{bytes, 1, 2, 2 * bytes};
  SlotLayout layout{shape, true};
  std::size_t part_bytes = round_up(layout.part_bytes(), page_bytes);
  std::byte* part = static_cast<std::byte*>(
      mmap(nullptr, part_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::optional<SlotBoard> board;

  Reserved() {
    REQUIRE(part != MAP_FAILED);
    REQUIRE(mprotect(part, SlotLayout::header_bytes, PROT_READ | PROT_WRITE) == 0);
    board.emplace(Region{{part}, part_bytes, nullptr}, shape, true);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  ~Reserved() { munmap(part, part_bytes); }
};

}  // namespace

TEST_CASE("a mirror takes memory for three messages when the first one comes") {
  const Reserved reserved;
  [[maybe_unused]] const std::size_t before = testing::data_bytes();
  [[maybe_unused]] const std::size_t pages = 2 * page_bytes * slot_count;
  MirrorWriter mirror(*reserved.board, 0);
  CHECK(mirror.set_status(WorkerStatus::running));
  mirror.begin();
  const std::size_t message = reserved.layout.message_bytes();
#ifndef __SANITIZE_THREAD__  // its own memory counts, too
  CHECK(testing::data_bytes() - before <= slot_count * message + pages);
#endif
  mirror.publish(0, 0);
  for (std::int64_t round = 1; round <= 4; ++round) {
    std::memset(mirror.begin(), 1, message);
    mirror.publish(round, round);
  }
  CHECK(testing::whole(reserved.board->payload(0, 5).data, bytes));
}

TEST_CASE("a mirror for which there is no memory is an error at the first message") {
  const Reserved reserved;
  MirrorWriter mirror(*reserved.board, 0);
  const testing::MoreDataAtMost limit(bytes);
  if (!limit.refuses(reserved.layout.message_bytes() * slot_count)) {
    WARN("skipped: this system ignores RLIMIT_DATA");
    return;
  }
  for (int attempt = 0; attempt < 2; ++attempt) CHECK_THROWS_AS(mirror.begin(), Error);
  CHECK(state_of(reserved.board->header(0)).sequence == 0);
}
