// Time passes only with calls of Heartbeat::beat().
#include "exchange/failure_detector.hpp"

#include <fast/core/memory.hpp>
#include <thread>

#include "exchange/pair.hpp"
#include "exchange/remote/replicator.hpp"
#include "exchange/shared/heartbeat.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

constexpr Seconds suspect_after{1}, deadline{2};

/// Two workers of one host.
struct Heartbeats {
  Pair pair{64};
  Heartbeat first{pair.board, 0, suspect_after}, second{pair.board, 1, suspect_after};

  WorkerHeader& header(int worker) const { return pair.board->header(worker); }
  static void beat(Heartbeat& heartbeat, std::uint64_t times) {
    for (std::uint64_t beat = 0; beat < times; ++beat) heartbeat.beat();
  }
  void beat_together(std::uint64_t times) {
    for (std::uint64_t beat = 0; beat < times; ++beat) {
      first.beat();
      second.beat();
    }
  }
};

}  // namespace

TEST_CASE("a worker without a sign of life becomes a suspect, and is none when it shows one") {
  Heartbeats heartbeats;
  heartbeats.beat_together(5);
  CHECK_FALSE(heartbeats.first.is_suspect(1));
  Heartbeats::beat(heartbeats.first, beats_in(suspect_after));
  CHECK_FALSE(heartbeats.first.is_suspect(1));
  Heartbeats::beat(heartbeats.first, 1);
  CHECK(heartbeats.first.is_suspect(1));
  CHECK(heartbeats.first.silence(1) > suspect_after);
  heartbeats.second.beat();
  CHECK_FALSE(heartbeats.first.is_suspect(1));
}

TEST_CASE("no worker becomes a suspect when all are suspended and resume one after the other") {
  Heartbeats heartbeats;
  for (int pause = 0; pause < 3; ++pause) {
    heartbeats.beat_together(5);
    // Suspended: no heartbeat. Then the first resumes before the second.
    Heartbeats::beat(heartbeats.first, 8);
    CHECK_FALSE(heartbeats.first.is_suspect(1));
    Heartbeats::beat(heartbeats.second, 1);
    CHECK_FALSE(heartbeats.second.is_suspect(0));
    CHECK_FALSE(heartbeats.first.is_suspect(1));
  }
}

TEST_CASE("rounds, publications and parts of a message are signs of life") {
  Heartbeats heartbeats;
  MirrorWriter mirror(*heartbeats.pair.board, 1);
  const std::function<void(int)> signs[] = {
      [&](int i) { heartbeats.header(1).reading.progress.store(i); },
      [&](int i) {
        heartbeats.header(1).publication.sequence.store(static_cast<std::uint64_t>(i));
      },
      [&](int) { mirror.arrived(1); },
      [&](int) { mirror.note_part(); },
  };
  for (const auto& sign : signs) {
    for (int i = 1; i < 10; ++i) {
      sign(i);
      Heartbeats::beat(heartbeats.first, beats_in(suspect_after) / 2);
      CHECK_FALSE(heartbeats.first.is_suspect(1));
    }
    Heartbeats::beat(heartbeats.first, 2 * beats_in(suspect_after));
    CHECK(heartbeats.first.is_suspect(1));
  }
}

TEST_CASE("a deadline counts from the latest progress of any worker") {
  Heartbeats heartbeats;
  ProgressDeadline limit(deadline, heartbeats.first.own());
  for (int round = 1; round < 10; ++round) {
    heartbeats.header(1).note_progress();
    heartbeats.beat_together(beats_in(deadline));
    CHECK_FALSE(limit.expired(heartbeats.first.own()));
  }
  heartbeats.beat_together(2 * beats_in(deadline));  // they live and wait for each other
  CHECK(limit.expired(heartbeats.first.own()));
  CHECK(limit.standstill(heartbeats.first.own()) > deadline);
  CHECK(limit.waited(heartbeats.first.own()) > 10 * deadline);
}

TEST_CASE("a deadline does not count beats that were not beaten") {
  Heartbeats heartbeats;
  ProgressDeadline limit(deadline, heartbeats.first.own());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a pause of any length
  CHECK_FALSE(limit.expired(heartbeats.first.own()));
}

TEST_CASE("a worker learns of progress on a host that it does not see, however far others are") {
  // Workers 0 and 1 share no memory, nor do 1 and 2, on the next host, where 0 and 1 are 1 and 2.
  Heartbeats here, there;
  Heartbeat& worker_0 = here.first;
  WorkerHeader& worker_1 = there.header(0);
  WorkerHeader& mirror_of_1 = here.header(1);
  const auto beat = [&](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      there.beat_together(1);
      merge_counters(mirror_of_1, PeerCounters::of(worker_1));
      worker_0.beat();
    }
  };
  for (int i = 0; i < 1000; ++i) here.header(0).note_progress();      // 0 has long been at work
  merge_counters(there.header(1), PeerCounters::of(here.header(0)));  // as a neighbor of theirs
  beat(3);
  ProgressDeadline limit(deadline, worker_0.own());
  for (int round = 0; round < 10; ++round) {
    there.header(1).note_progress();  // worker 2 alone
    beat(beats_in(deadline));
    CHECK_FALSE(limit.expired(worker_0.own()));
  }
  beat(2 * beats_in(deadline));
  CHECK(limit.expired(worker_0.own()));
}

TEST_CASE("a long message from a worker whose heartbeats stand behind it is waited for") {
  constexpr std::size_t bytes = 1 << 16;
  const Pair pair(bytes);
  ExchangeOptions options = testing::staleness(0);
  options.suspect_after = Seconds(0.3);
  options.deadline = Seconds(0.6);
  const SlotPeers waiting(pair.heartbeat(Pair::reader_rank, options.suspect_after));
  SlotExchange reader = pair.end(Pair::reader_rank, options);
  MirrorWriter mirror(*pair.board, Pair::writer_rank);
  // A part with every heartbeat of the reader, for several times as long as either limit.
  const auto& beats = pair.board->header(Pair::reader_rank).life.heartbeat;
  std::thread sending([&] {
    std::byte* slot = mirror.begin(0, 0);
    for (std::size_t part = 1; part <= 20; ++part) {
      for (const auto before = beats.load(); beats.load() == before;) std::this_thread::yield();
      mirror.arrived(part * bytes / 20);
    }
    std::memset(slot, 7, bytes);
    mirror.publish(0, 0);
  });
  Arrival::State state = Arrival::State::suspect;
  CHECK_NOTHROW(state = reader.fetch(0).front().state);
  CHECK(state == Arrival::State::present);
  sending.join();
}
