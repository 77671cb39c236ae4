// Time passes here when hearts are made to beat, and only then.
#include "exchange/failure_detector.hpp"

#include <fast/core/memory.hpp>
#include <thread>

#include "exchange/pair.hpp"
#include "exchange/remote/replicator.hpp"
#include "exchange/shared/heart.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

constexpr Seconds suspect_after{1}, deadline{2};

/// Two workers of one host.
struct Hearts {
  Pair pair{64};
  Heart first{pair.board, 0, suspect_after}, second{pair.board, 1, suspect_after};

  WorkerHeader& header(int worker) const { return pair.board->header(worker); }
  static void beat(Heart& heart, std::uint64_t times) {
    for (std::uint64_t beat = 0; beat < times; ++beat) heart.beat();
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
  Hearts hearts;
  hearts.beat_together(5);
  CHECK_FALSE(hearts.first.is_suspect(1));
  Hearts::beat(hearts.first, beats_in(suspect_after));
  CHECK_FALSE(hearts.first.is_suspect(1));
  Hearts::beat(hearts.first, 1);
  CHECK(hearts.first.is_suspect(1));
  CHECK(hearts.first.silence(1) > suspect_after);
  hearts.second.beat();
  CHECK_FALSE(hearts.first.is_suspect(1));
}

TEST_CASE("nobody becomes a suspect when all are suspended and go on one after the other") {
  Hearts hearts;
  for (int pause = 0; pause < 3; ++pause) {
    hearts.beat_together(5);
    // Suspended for however long: no heart beats. Then the first goes on before the second.
    Hearts::beat(hearts.first, 8);
    CHECK_FALSE(hearts.first.is_suspect(1));
    Hearts::beat(hearts.second, 1);
    CHECK_FALSE(hearts.second.is_suspect(0));
    CHECK_FALSE(hearts.first.is_suspect(1));
  }
}

TEST_CASE("rounds, publications and parts of a message are signs of life") {
  Hearts hearts;
  MirrorWriter mirror(*hearts.pair.board, 1);
  const std::function<void(int)> signs[] = {
      [&](int i) { hearts.header(1).reading.progress.store(i); },
      [&](int i) { hearts.header(1).publication.sequence.store(static_cast<std::uint64_t>(i)); },
      [&](int) { mirror.arrived(1); },
      [&](int) { mirror.heard(); },
  };
  for (const auto& sign : signs) {
    for (int i = 1; i < 10; ++i) {
      sign(i);
      Hearts::beat(hearts.first, beats_in(suspect_after) / 2);
      CHECK_FALSE(hearts.first.is_suspect(1));
    }
    Hearts::beat(hearts.first, 2 * beats_in(suspect_after));
    CHECK(hearts.first.is_suspect(1));
  }
}

TEST_CASE("a deadline counts from the latest progress of any worker") {
  Hearts hearts;
  Patience patience(deadline, hearts.first.own());
  for (int round = 1; round < 10; ++round) {
    hearts.header(1).note_progress();
    hearts.beat_together(beats_in(deadline));
    CHECK_FALSE(patience.is_over(hearts.first.own()));
  }
  hearts.beat_together(2 * beats_in(deadline));  // they live and wait for each other
  CHECK(patience.is_over(hearts.first.own()));
  CHECK(patience.standstill(hearts.first.own()) > deadline);
  CHECK(patience.waited(hearts.first.own()) > 10 * deadline);
}

TEST_CASE("a deadline does not count beats that were not beaten") {
  Hearts hearts;
  Patience patience(deadline, hearts.first.own());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a pause of any length
  CHECK_FALSE(patience.is_over(hearts.first.own()));
}

TEST_CASE("a worker learns of progress on a host that it does not see, however far others are") {
  // Workers 0 and 1 share no memory, nor do 1 and 2, on the next host, where 0 and 1 are 1 and 2.
  Hearts here, there;
  Heart& worker_0 = here.first;
  WorkerHeader& worker_1 = there.header(0);
  WorkerHeader& mirror_of_1 = here.header(1);
  const auto beat = [&](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      there.beat_together(1);
      take_over(mirror_of_1, PeerCounters::of(worker_1));
      worker_0.beat();
    }
  };
  for (int i = 0; i < 1000; ++i) here.header(0).note_progress();  // 0 has long been at work
  take_over(there.header(1), PeerCounters::of(here.header(0)));   // as a neighbor of theirs
  beat(3);
  Patience patience(deadline, worker_0.own());
  for (int round = 0; round < 10; ++round) {
    there.header(1).note_progress();  // worker 2 alone
    beat(beats_in(deadline));
    CHECK_FALSE(patience.is_over(worker_0.own()));
  }
  beat(2 * beats_in(deadline));
  CHECK(patience.is_over(worker_0.own()));
}

TEST_CASE("a long message from a worker whose heartbeats stand behind it is waited for") {
  constexpr std::size_t bytes = 1 << 16;
  const Pair pair(bytes);
  ExchangeOptions options = testing::staleness(0);
  options.suspect_after = Seconds(0.3);
  options.deadline = Seconds(0.6);
  const SlotPeers waiting(pair.heart(Pair::reader_rank, options.suspect_after));
  SlotExchange reader = pair.end(Pair::reader_rank, options);
  MirrorWriter mirror(*pair.board, Pair::writer_rank);
  // A part with every beat of the reader's heart, for several times as long as either limit.
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
