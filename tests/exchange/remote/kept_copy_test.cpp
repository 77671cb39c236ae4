// Copies that worker 0 keeps for worker 1, which says how long its reads take.
#include "exchange/remote/pull/kept_copy.hpp"

#include <thread>

#include "exchange/pair.hpp"
#include "exchange/shared/seqlock.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

struct Keeping {
  static constexpr std::size_t bytes = 64 << 10;
  Pair pair{bytes};
  SlotExchange writer = pair.end(Pair::writer_rank, testing::staleness(unbounded_staleness));
  RemoteEdges edges{pair.board,
                    Pair::writer_rank,
                    [](std::int64_t) {
                      return RoundEdges{{}, {Pair::reader_rank}};
                    },
                    unbounded_staleness,
                    Throttle(),
                    SendBuffers(pair.board, Pair::writer_rank)};
  bool is_remote = true;
  KeptCopy copy{edges, [this](int) { return is_remote; }};
  const Clock::time_point start = Clock::now();

  bool advance(double ms) {
    return copy.advance(start + std::chrono::duration_cast<Clock::duration>(Seconds(ms / 1e3)));
  }
  void publish(std::int64_t round) { testing::write(writer, round, bytes); }
  void say_slow(double ms) const {
    auto& slow_ns = pair.board->header(Pair::reader_rank).reading.slow_read_ns;
    slow_ns = static_cast<std::uint64_t>(ms * 1e6);
  }
  WorkerHeader::Publication& slots() const {
    return pair.board->header(Pair::writer_rank).publication;
  }
  WorkerHeader::Kept& kept() const { return pair.board->header(Pair::writer_rank).kept; }
  std::byte content() const { return pair.board->kept(Pair::writer_rank)[0]; }
};

}  // namespace

TEST_CASE("a copy is kept only for readers that need one, and twice as long as their reads take") {
  Keeping run;
  run.publish(0);
  CHECK_FALSE(run.advance(0));
  run.say_slow(10);
  CHECK(run.advance(1));
  CHECK(run.kept().sequence == 1);
  CHECK(run.kept().first == 0);
  for (std::int64_t round = 1; round < 9; ++round) run.publish(round);
  CHECK_FALSE(run.advance(20.5));
  CHECK(run.content() == std::byte{0});
  CHECK(run.advance(21.5));
  CHECK(run.kept().sequence == 9);
  CHECK(run.kept().until == 8);
  CHECK(run.content() == std::byte{8});
  CHECK_FALSE(run.advance(99));  // nothing new
  run.publish(9);
  run.say_slow(0);
  CHECK_FALSE(run.advance(100));
}

TEST_CASE("readers of this host and those that have ended need no copies") {
  Keeping run;
  run.say_slow(1);
  run.is_remote = false;
  run.publish(0);
  CHECK_FALSE(run.advance(0));
  run.is_remote = true;
  auto& status = run.pair.board->header(Pair::reader_rank).life.status;
  status = static_cast<std::uint32_t>(WorkerStatus::finished);
  CHECK_FALSE(run.advance(1));
  status = static_cast<std::uint32_t>(WorkerStatus::running);
  CHECK(run.advance(2));
}

TEST_CASE("a copy goes sooner when its readers have become faster") {
  Keeping run;
  run.say_slow(10'000);
  run.publish(0);
  CHECK(run.advance(0));
  run.publish(1);
  run.say_slow(5);
  CHECK(run.advance(11));
}

TEST_CASE("a publication that is in force for further rounds is noted in its copy") {
  Keeping run;
  run.say_slow(1);
  run.publish(0);
  CHECK(run.advance(0));
  run.writer.publish(4);
  CHECK(run.advance(5));
  CHECK(run.kept().sequence == 1);
  CHECK(run.kept().until == 4);
}

TEST_CASE("while the worker writes to its newest slot there is no copy of it") {
  Keeping run;
  run.say_slow(1);
  run.publish(0);
  run.slots().rounds[1] = being_written;
  CHECK_FALSE(run.advance(0));
  CHECK(run.kept().sequence == 0);
}

TEST_CASE("copies are whole while the worker publishes as fast as it can") {
  Keeping run;
  run.say_slow(0.001);
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    for (std::int64_t round = 0; !stop; ++round) run.publish(round);
  });
  const Deadline deadline(Seconds(20));
  int copies = 0, torn = 0;
  auto now = Clock::now();
  while (copies < 200 && !deadline.expired()) {
    now += std::chrono::milliseconds(1);
    if (!run.copy.advance(now)) continue;
    ++copies;
    const std::byte* data = run.pair.board->kept(Pair::writer_rank);
    const bool is_of_round = data[0] == static_cast<std::byte>(run.kept().until & 0xff);
    if (!is_of_round || !testing::whole(data, Keeping::bytes)) ++torn;
  }
  stop = true;
  worker.join();
  CHECK(copies == 200);
  CHECK(torn == 0);
}
