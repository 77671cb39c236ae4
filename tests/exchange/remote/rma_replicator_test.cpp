// Worker 1 pulls what worker 0 of another host publishes.
#include "exchange/remote/pull/rma_replicator.hpp"

#include <algorithm>

#include "exchange/remote/pull/kept_copy.hpp"
#include "exchange/two_hosts.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;
using testing::whole;

namespace {

struct Pulling : testing::TwoHosts {
  explicit Pulling(std::int64_t bound = 0) { edges.staleness = bound; }
  explicit Pulling(const PayloadShape& shape) : TwoHosts(shape) {}
  RmaReplicator puller{edges, window, Pair::writer_rank};

  /// A look, and the copy if it finds something to copy.
  void look() {
    repeat_until([&] { puller.advance(); }, [&] { return puller.is_idle(); });
  }
  /// Stops when the copy has begun. The counters of the other host must be known here already.
  void look_until_copying() {
    bool moved = false;
    repeat_until([&] { moved = puller.advance(); }, [&] { return moved; });
    REQUIRE_FALSE(puller.is_idle());
  }
  /// What this worker reads in a round that is here.
  void expect_present(std::int64_t round, std::int64_t content) {
    const Arrival arrival = reader.fetch(round).front();
    CHECK(arrival.state == Arrival::State::present);
    CHECK(arrival.round == round);
    CHECK(whole(arrival.payload.data, bytes));
    CHECK(arrival.payload.data[0] == static_cast<std::byte>(content));
    CHECK(reader.is_intact(arrival));
  }
};

}  // namespace

TEST_CASE("a puller brings the round that its worker is in and the next, each once") {
  Pulling hosts;
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

TEST_CASE("a puller reads no more than what the round's edges carry") {
  constexpr PayloadPart part{1 << 20, (2 << 20) + 64};
  Pulling hosts;
  hosts.edges.plan = [part](std::int64_t round) {
    return RoundEdges{{Pair::writer_rank}, {}, round == 1 ? part : PayloadPart{}};
  };
  hosts.publish(1);
  hosts.reader.complete(1);
  for (int k = 0; k < 2; ++k) hosts.look();
  const Arrival arrival = hosts.reader.fetch(1).front();
  REQUIRE(arrival.state == Arrival::State::present);
  const auto count = [&](std::byte value) {
    return std::count(arrival.payload.data, arrival.payload.data + Pulling::bytes, value);
  };
  CHECK(count(std::byte{1}) == static_cast<std::ptrdiff_t>(part.size_bytes()));
  CHECK(count(std::byte{0}) == static_cast<std::ptrdiff_t>(Pulling::bytes - part.size_bytes()));
  CHECK(arrival.payload.data[part.begin] == std::byte{1});
  CHECK(arrival.payload.data[part.end - 1] == std::byte{1});
  hosts.publish(2);
  hosts.reader.complete(2);
  for (int k = 0; k < 2; ++k) hosts.look();
  hosts.expect_present(2, 2);
}

TEST_CASE("a puller reads the scalars and the part of its edge, and nothing between them") {
  const PayloadShape shape{Pulling::bytes / 2, 3, 3};
  for (std::size_t vector = 0; vector < 3; ++vector) {
    Pulling hosts(shape);
    const std::size_t begin = vector * shape.stride_bytes();
    hosts.edges.plan = [&](std::int64_t) {
      return RoundEdges{{Pair::writer_rank}, {}, {}, {{begin, begin + shape.vector_bytes}}, {}};
    };
    const SlotLayout& layout = hosts.there.board->layout();
    std::memset(hosts.writer.acquire().scalars, 7, layout.message_bytes());
    hosts.writer.publish(0);
    hosts.look();
    const Arrival arrival = hosts.reader.fetch(0).front();
    REQUIRE(arrival.state == Arrival::State::present);
    const auto* slot = reinterpret_cast<const std::byte*>(arrival.payload.scalars);
    const auto sevens = [&](std::size_t first, std::size_t count) {
      return std::count(slot + first, slot + first + count, std::byte{7});
    };
    const auto scalars = static_cast<std::ptrdiff_t>(3 * sizeof(double));
    const auto bytes = static_cast<std::ptrdiff_t>(shape.vector_bytes);
    INFO("vector " << vector);
    CHECK(sevens(0, 3 * sizeof(double)) == scalars);
    CHECK(sevens(layout.data_offset() + begin, shape.vector_bytes) == bytes);
    CHECK(sevens(0, layout.message_bytes()) == scalars + bytes);
  }
}

TEST_CASE(
    "a worker whose round is gone on the other host gets the newest one and sees that it has "
    "missed the round") {
  Pulling hosts;
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

TEST_CASE("a round that one look misses and the next one finds is copied") {
  Pulling hosts;
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
  Pulling hosts;
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
  Pulling hosts;
  hosts.publish(0);
  hosts.look_until_copying();
  for (const std::int64_t round : {1, 2, -1}) hosts.publish(round);
  hosts.look();
  CHECK(hosts.mirrored() == 0);
}

TEST_CASE("parts of a payload that is pulled are signs of life") {
  Pulling hosts;
  hosts.publish(0);
  const std::uint64_t before = hosts.mirror().arriving.parts.load();
  hosts.look();
  CHECK(hosts.mirror().arriving.parts.load() >= before + 1);
}

TEST_CASE("a worker has not left before its last payload is here") {
  Pulling hosts;
  hosts.set_status(WorkerStatus::running);
  for (std::int64_t round = 0; round < 3; ++round) hosts.publish(round);
  hosts.writer.complete(3);
  hosts.set_status(WorkerStatus::finished);
  for (std::int64_t round = 0; round < 3; ++round) {
    for (int k = 0; k < 4; ++k) hosts.look();
    CHECK(hosts.mirrored_status() != WorkerStatus::finished);
    hosts.expect_present(round, round);
    hosts.reader.complete(round + 1);
  }
  for (int k = 0; k < 3; ++k) hosts.look();
  CHECK(hosts.mirrored_status() == WorkerStatus::finished);
}

TEST_CASE("a reader for which slots never last long enough reads kept copies") {
  Pulling hosts(unbounded_staleness);
  exchange::RemoteEdges there{hosts.there.board,
                              Pair::writer_rank,
                              [](std::int64_t) {
                                return RoundEdges{{}, {Pair::reader_rank}};
                              },
                              unbounded_staleness,
                              exchange::Throttle(),
                              exchange::SendBuffers(hosts.there.board, Pair::writer_rank)};
  KeptCopy kept(there, [](int) { return true; });
  auto& slow_there = hosts.there.board->header(Pair::reader_rank).reading.slow_read_ns;
  std::int64_t round = 0;
  for (int read = 0; read < 6; ++read) {
    for (int k = 0; k < 3; ++k) hosts.publish(round++);
    slow_there = static_cast<std::uint64_t>(hosts.puller.slow_read().count() * 1e9);
    kept.advance(Clock::now() + std::chrono::minutes(read));
    hosts.look_until_copying();
    for (int k = 0; k < 3; ++k) hosts.publish(round++);
    hosts.look();
    INFO("read " << read);
    CHECK(hosts.mirrored() == static_cast<std::uint64_t>(read));  // the first one was overwritten
  }
}
