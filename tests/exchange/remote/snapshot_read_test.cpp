#include "exchange/remote/pull/snapshot_read.hpp"

#include "exchange/remote/pull/remote_reads.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "exchange/two_hosts.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;
using testing::TwoHosts;
using testing::whole;

namespace {

constexpr bool is_followed = true;

template <class Task>
void run_to_end(Task& task, bool followed = false) {
  testing::TwoHosts::repeat_until([&] { task.advance(followed); }, [&] { return task.ended(); });
}

}  // namespace

TEST_CASE("a snapshot is the newest message, or the weights where those are beside it") {
  const PayloadShape shape{testing::TwoHosts::bytes, 2, 1, 1000};
  testing::TwoHosts hosts(shape);
  for (const bool with_weights : {false, true}) {
    const MutablePayload payload = hosts.writer.acquire();
    std::memset(payload.vector(0), 7, shape.vector_bytes);
    std::memset(payload.weights, 9, shape.weights_bytes);
    hosts.writer.publish(with_weights ? 1 : 0, with_weights);
    SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank, {}, TwoHosts::bytes);
    run_to_end(read);
    CHECK(read.result() == (with_weights ? Snapshot::weights : Snapshot::message));
    REQUIRE(read.bytes().size() == (with_weights ? shape.weights_bytes : shape.vector_bytes));
    CHECK(whole(read.bytes().data(), read.bytes().size()));
    CHECK(read.bytes()[0] == (with_weights ? std::byte{9} : std::byte{7}));
    CHECK(read.released());
  }
  CHECK(hosts.mirrored() == 0);  // nothing of it goes to the mirror
}

TEST_CASE("a snapshot of a slot that is overwritten meanwhile is read again") {
  testing::TwoHosts hosts;
  hosts.publish(0);
  SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank, {}, TwoHosts::bytes);
  for (int i = 0; i < 3; ++i) read.advance(false);
  hosts.repeat_until([&] { read.advance(false); },
                     [&] { return hosts.mirror().arriving.parts.load() > 0; });
  for (std::int64_t round = 1; round < 4; ++round) hosts.publish(round);
  run_to_end(read);
  CHECK(read.result() == Snapshot::message);
  CHECK(read.bytes()[0] == std::byte{3});
  CHECK(whole(read.bytes().data(), read.bytes().size()));
}

TEST_CASE("a snapshot of a worker that publishes nothing ends without one") {
  testing::TwoHosts hosts;
  SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank, {}, TwoHosts::bytes);
  run_to_end(read);
  CHECK(read.result() == Snapshot::none);
}

TEST_CASE("a part of a publication is read, as long as no other one replaces it") {
  testing::TwoHosts hosts;
  const auto read = [&](const Piece& piece, std::size_t most) {
    SnapshotRead task(hosts.edges, hosts.window, Pair::writer_rank, piece, most);
    run_to_end(task);
    return std::pair(task.result(), task.bytes().size());
  };
  hosts.publish(0);
  CHECK(read({100, 0}, 50) == std::pair(Snapshot::message, std::size_t{50}));
  CHECK(read({100, 1}, 50) == std::pair(Snapshot::message, std::size_t{50}));
  CHECK(read({TwoHosts::bytes - 10, 1}, 50) == std::pair(Snapshot::message, std::size_t{10}));
  hosts.publish(1);
  CHECK(read({0, 1}, 50).first == Snapshot::message);  // its slot is not written yet
  hosts.publish(2);
  CHECK(read({0, 1}, 50).first == Snapshot::none);
  CHECK(read({0, 3}, 50).first == Snapshot::message);
}

TEST_CASE("a result is read where its worker has left it, and so are its figures") {
  testing::TwoHosts hosts;
  hosts.publish(0);
  const std::shared_ptr<Heartbeat> heartbeat =
      std::make_shared<Heartbeat>(hosts.there.board, Pair::writer_rank, Seconds(5));
  SlotPeers peers(heartbeat);
  peers.trim();
  const auto room = peers.room();
  REQUIRE(room.size() == TwoHosts::bytes);
  std::memset(room.data(), 5, room.size());
  peers.show({Reduced::Stage::part, {0.25, 3}, {}});
  SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank, {1000, 0}, 200,
                    SnapshotRead::Of::result);
  run_to_end(read);
  CHECK(read.result() == Snapshot::message);
  REQUIRE(read.bytes().size() == 200);
  CHECK(read.bytes()[199] == std::byte{5});
  HeaderFetch look(*hosts.here.board, hosts.window, Pair::writer_rank);
  run_to_end(look);
  const Reduced shown = reduced_of(hosts.mirror());
  CHECK(shown.stage == Reduced::Stage::part);
  CHECK(shown.part.mean_square == 0.25);
  CHECK(shown.part.workers == 3);
}

TEST_CASE("a look brings the counters, and the status unless a replicator does") {
  testing::TwoHosts hosts;
  hosts.set_status(WorkerStatus::running);
  hosts.remote().life.heartbeat.store(5);
  hosts.writer.complete(3);
  HeaderFetch beside(*hosts.here.board, hosts.window, Pair::writer_rank);
  run_to_end(beside, is_followed);
  CHECK(hosts.mirror().reading.progress.load() == 3);
  CHECK(hosts.mirror().life.heartbeat.load() == 5);
  CHECK(hosts.mirrored_status() == WorkerStatus::starting);
  HeaderFetch alone(*hosts.here.board, hosts.window, Pair::writer_rank);
  run_to_end(alone);
  CHECK(hosts.mirrored_status() == WorkerStatus::running);
  CHECK(alone.released());
}
