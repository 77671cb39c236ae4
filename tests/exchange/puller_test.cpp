// Worker 0 "over there" and worker 1 here, which pulls, in one process: each has a board of its
// own.
#include "exchange/remote/puller.hpp"

#include "exchange/pair.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;
using testing::staleness;
using testing::whole;

namespace {

constexpr std::size_t bytes = std::size_t{3} << 20;  // more than one chunk

struct TwoHosts {
  Pair there{bytes}, here{bytes};
  mpi::RemoteWindow window{
      testing::world(), reinterpret_cast<std::byte*>(&there.board->header(Pair::writer_rank)),
      SlotLayout(there.shape).part_bytes(), there.memory, Deadline(Seconds(20))};
  SlotExchange writer = there.end(Pair::writer_rank, staleness(unbounded_staleness));
  SlotExchange reader = here.end(Pair::reader_rank, staleness(0));
  RemoteEdges edges{here.board,
                    Pair::reader_rank,
                    [](std::int64_t) {
                      return RoundEdges{{Pair::writer_rank}, {}}; },
                    0,
                    Throttle(),
                    SendBuffers(here.board, Pair::reader_rank)};
  Puller puller{edges, window, Pair::writer_rank};

  TwoHosts() { remote().constant.magic.store(board_magic); }

  WorkerHeader& remote() const { return there.board->header(Pair::writer_rank); }
  WorkerHeader& mirror() const { return here.board->header(Pair::writer_rank); }
  std::uint64_t mirrored() const { return mirror().publication.sequence.load(); }
  WorkerStatus mirrored_status() const { return status_of(mirror()); }

  void publish(std::int64_t round) { testing::write(writer, round, bytes); }

  /// A look, and the copy if it finds something to want.
  void look() {
    const Deadline deadline(Seconds(20));
    do puller.advance();
    while (!puller.is_idle() && !deadline.expired());
    REQUIRE(puller.is_idle());
  }
  /// Stops when the copy has begun. The counters over there must be known here already.
  void look_until_copying() {
    const Deadline deadline(Seconds(20));
    while (!puller.advance() && !deadline.expired()) continue;
    REQUIRE_FALSE(puller.is_idle());
  }
  /// What this worker reads in a round that is here.
  void expect_present(std::int64_t round, std::int64_t content) {
    const Arrival arrival = reader.fetch(round).front();
    CHECK(arrival.state == Arrival::State::present);
    CHECK(arrival.round == round);
    CHECK(whole(arrival.payload.data, bytes));
    CHECK(arrival.payload.data[0] == static_cast<std::byte>(content));
    CHECK(reader.stands(arrival));
  }
};

}  // namespace

TEST_CASE("a puller brings the round that its worker is in and the next, each once") {
  TwoHosts hosts;
  hosts.look();
  CHECK(hosts.mirrored() == 0);
  for (std::int64_t round = 0; round < 3; ++round) hosts.publish(round);
  for (int k = 0; k < 4; ++k) hosts.look();
  CHECK(hosts.mirrored() == 2);
  hosts.expect_present(0, 0);
  hosts.expect_present(1, 1);
  hosts.reader.complete(1);
  for (int k = 0; k < 2; ++k) hosts.look();
  CHECK(hosts.mirrored() == 3);
  hosts.expect_present(2, 2);
}

TEST_CASE("a worker whose round is gone over there is passed the newest and told so") {
  TwoHosts hosts;
  hosts.publish(0);
  hosts.look();
  hosts.expect_present(0, 0);
  hosts.reader.complete(1);
  for (std::int64_t round = 1; round < 9; ++round) hosts.publish(round);
  hosts.writer.publish(11);  // the last one stays in force for three rounds more
  hosts.writer.complete(11);
  hosts.look();
  CHECK(hosts.mirrored() == 2);
  CHECK(hosts.mirror().reading.progress.load() == 11);
  CHECK(hosts.reader.fetch(1).front().state == Arrival::State::missed);
  hosts.look();
  CHECK(hosts.mirrored() == 2);  // not again

  hosts.reader.complete(11);  // it has rejoined
  hosts.expect_present(11, 8);
  hosts.publish(12);
  hosts.look();
  hosts.expect_present(12, 12);
}

TEST_CASE("a round that one look misses and the next finds is not passed over") {
  TwoHosts hosts;
  hosts.publish(0);
  hosts.look();
  hosts.reader.complete(1);
  hosts.look();
  hosts.publish(1);
  hosts.publish(2);
  auto& round_1 = hosts.there.board->round(Pair::writer_rank, 2);
  round_1.store(being_written);
  hosts.look_until_copying();  // of round 2, in place of 1
  round_1.store(1);
  hosts.look();
  CHECK(hosts.mirrored() == 1);
  hosts.look();
  CHECK(hosts.mirrored() == 2);
  hosts.expect_present(1, 1);
}

TEST_CASE("a slot overwritten while it is copied is not mirrored") {
  TwoHosts hosts;
  hosts.publish(0);
  hosts.look_until_copying();
  for (std::int64_t round = 1; round < 4; ++round) hosts.publish(round);
  hosts.look();
  CHECK(hosts.mirrored() == 0);
  hosts.look();
  CHECK(hosts.mirrored() == 1);
  CHECK(hosts.reader.fetch(0).front().state == Arrival::State::missed);
}

TEST_CASE("a slot overwritten by weights alone while it is copied is not mirrored") {
  TwoHosts hosts;
  hosts.publish(0);
  hosts.look_until_copying();
  for (const std::int64_t round : {1, 2, -1}) hosts.publish(round);
  hosts.look();
  CHECK(hosts.mirrored() == 0);
}

TEST_CASE("parts of a payload that is pulled are signs of life") {
  TwoHosts hosts;
  hosts.publish(0);
  const std::uint64_t before = hosts.mirror().arriving.parts.load();
  hosts.look();
  CHECK(hosts.mirror().arriving.parts.load() >= before + 1);
}

TEST_CASE("a worker has not left before its last payload is here") {
  TwoHosts hosts;
  hosts.remote().life.status.store(static_cast<std::uint32_t>(WorkerStatus::running));
  for (std::int64_t round = 0; round < 3; ++round) hosts.publish(round);
  hosts.writer.complete(3);
  hosts.remote().life.status.store(static_cast<std::uint32_t>(WorkerStatus::finished));
  for (std::int64_t round = 0; round < 3; ++round) {
    for (int k = 0; k < 4; ++k) hosts.look();
    CHECK(hosts.mirrored_status() != WorkerStatus::finished);
    hosts.expect_present(round, round);
    hosts.reader.complete(round + 1);
  }
  for (int k = 0; k < 3; ++k) hosts.look();
  CHECK(hosts.mirrored_status() == WorkerStatus::finished);
}
