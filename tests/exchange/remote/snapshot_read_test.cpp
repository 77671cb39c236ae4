#include "exchange/remote/pull/snapshot_read.hpp"

#include "exchange/remote/pull/remote_look.hpp"
#include "exchange/two_hosts.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;
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
    SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank);
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
  SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank);
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
  SnapshotRead read(hosts.edges, hosts.window, Pair::writer_rank);
  run_to_end(read);
  CHECK(read.result() == Snapshot::none);
}

TEST_CASE("a look brings the counters, and the status unless a replicator does") {
  testing::TwoHosts hosts;
  hosts.set_status(WorkerStatus::running);
  hosts.remote().life.heartbeat.store(5);
  hosts.writer.complete(3);
  RemoteLook beside(*hosts.here.board, hosts.window, Pair::writer_rank);
  run_to_end(beside, is_followed);
  CHECK(hosts.mirror().reading.progress.load() == 3);
  CHECK(hosts.mirror().life.heartbeat.load() == 5);
  CHECK(hosts.mirrored_status() == WorkerStatus::starting);
  RemoteLook alone(*hosts.here.board, hosts.window, Pair::writer_rank);
  run_to_end(alone);
  CHECK(hosts.mirrored_status() == WorkerStatus::running);
  CHECK(alone.released());
}
