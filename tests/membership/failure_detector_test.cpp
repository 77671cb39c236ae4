// Time passes only with calls of Heartbeat::beat().
#include "membership/liveness.hpp"

#include <deque>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <thread>

#include "exchange/pair.hpp"
#include "exchange/remote/replicator.hpp"
#include "exchange/shared/heartbeat.hpp"
#include "exchange/shared/slot_peers.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using namespace fast::exchange;
using namespace fast::membership;
using testing::Pair;

namespace {

constexpr Seconds suspect_after{1}, deadline{2};

/// Two workers of one host.
struct Heartbeats {
  explicit Heartbeats(std::optional<Seconds> limit = suspect_after)
      : first(pair.board, 0, limit), second(pair.board, 1, limit) {}
  Pair pair{64};
  Heartbeat first, second;

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

constexpr std::optional<Seconds> automatic;
constexpr std::uint64_t usual_limit = 11;  ///< heartbeats: a gap of one has a threshold of 1 s

/// Beats of the first worker alone until it suspects the second one.
std::uint64_t beats_until_suspect(Heartbeats& heartbeats) {
  std::uint64_t beats = 0;
  while (!heartbeats.first.is_suspect(1) && beats < 1000) {
    heartbeats.first.beat();
    ++beats;
  }
  return beats;
}

/// The first worker, which sees signs of life of the second one `delay_ms` after each of its
/// heartbeats, in their order.
class DelayedSigns {
 public:
  explicit DelayedSigns(Heartbeats& heartbeats) : heartbeats_(heartbeats) {}

  /// A tenth of a second.
  template <class Delay>
  void beat(const Delay& delay_ms) {
    const double now_ms = 100 * static_cast<double>(beats_);
    latest_ms_ = std::max(latest_ms_, now_ms + delay_ms());
    arrivals_ms_.push_back(latest_ms_);
    ++beats_;
    for (; !arrivals_ms_.empty() && arrivals_ms_.front() <= now_ms; arrivals_ms_.pop_front()) {
      heartbeats_.second.beat();
    }
    heartbeats_.first.beat();
  }

 private:
  Heartbeats& heartbeats_;
  std::uint64_t beats_ = 0;
  double latest_ms_ = 0;
  std::deque<double> arrivals_ms_;
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
  CHECK(heartbeats.first.detector().silence(1) > suspect_after);
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

TEST_CASE("a worker with the longest threshold never becomes a suspect, nor does a wait expire") {
  for (const Seconds never : {Seconds::max(), Seconds(1e30), Seconds(1e19), Seconds(2e18)}) {
    INFO(never.count());
    CHECK(beats_in(never) > std::uint64_t{1} << 62);
    Heartbeats heartbeats(never);
    ProgressDeadline limit(never, heartbeats.first.own());
    heartbeats.beat_together(5);
    Heartbeats::beat(heartbeats.first, 1000);
    CHECK_FALSE(heartbeats.first.is_suspect(1));
    CHECK_FALSE(limit.expired(heartbeats.first.own()));
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
  options.suspect_after = Seconds(3);
  options.deadline = Seconds(4);
  const SlotPeers waiting(pair.heartbeat(Pair::reader_rank, options.suspect_after));
  SlotExchange reader = pair.end(Pair::reader_rank, options);
  MirrorWriter mirror(*pair.board, Pair::writer_rank);
  // A part with every third heartbeat of the reader, for twice as long as either limit.
  const auto& beats = pair.board->header(Pair::reader_rank).life.heartbeat;
  std::thread sending([&] {
    std::byte* slot = mirror.begin(0, 0);
    for (std::size_t part = 1; part <= 32; ++part) {
      for (const auto before = beats.load(); beats.load() < before + 3;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      mirror.arrived(part * bytes / 32);
    }
    std::memset(slot, 7, bytes);
    mirror.publish(0, 0);
  });
  Arrival::State state = Arrival::State::suspect;
  CHECK_NOTHROW(state = reader.fetch(0).front().state);
  CHECK(state == Arrival::State::present);
  sending.join();
}

TEST_CASE("an automatic threshold is 5 s until 50 gaps are known, and 1 s then") {
  Heartbeats heartbeats(automatic);
  heartbeats.beat_together(40);
  CHECK(heartbeats.first.detector().suspect_after(1) ==
        seconds_of(beats_in(suspect_after_at_first)));
  CHECK(beats_until_suspect(heartbeats) == beats_in(suspect_after_at_first) + 1);
  heartbeats.beat_together(20);
  CHECK(heartbeats.first.detector().suspect_after(1) == seconds_of(usual_limit));
  CHECK(beats_until_suspect(heartbeats) == usual_limit + 1);
  CHECK(heartbeats.first.detector().silence(1) < Seconds(2));
}

TEST_CASE("workers that were all suspended do not suspect each other with an automatic threshold") {
  Heartbeats heartbeats(automatic);
  heartbeats.beat_together(100);
  for (int pause = 0; pause < 100; ++pause) {
    // Suspended for any time: no heartbeat. Then the first resumes up to 0.9 s before the second.
    Heartbeats::beat(heartbeats.first, static_cast<std::uint64_t>(pause % 10));
    CHECK_FALSE(heartbeats.first.is_suspect(1));
    heartbeats.beat_together(150);
    CHECK_FALSE(heartbeats.second.is_suspect(0));
    CHECK(heartbeats.first.detector().suspect_after(1) == seconds_of(usual_limit));
  }
}

TEST_CASE("a worker that is suspended for longer is a suspect, and has the same threshold then") {
  Heartbeats heartbeats(automatic);
  heartbeats.beat_together(100);
  for (int pause = 0; pause < 20; ++pause) {
    CHECK(beats_until_suspect(heartbeats) == usual_limit + 1);
    Heartbeats::beat(heartbeats.first, 1000);
    heartbeats.second.beat();
    CHECK_FALSE(heartbeats.first.is_suspect(1));
    heartbeats.beat_together(150);
  }
}

TEST_CASE("a jitter of 200 ms makes no suspect, and a death is noticed within 2 s") {
  const std::uint64_t seed = test_seed(17);
  INFO("seed " << seed);
  Rng rng(seed);
  Heartbeats heartbeats(automatic);
  DelayedSigns signs(heartbeats);
  int suspicions = 0;
  for (int beat = 0; beat < 36000; ++beat) {  // an hour
    signs.beat([&] { return rng.uniform(0, 200); });
    suspicions += heartbeats.first.is_suspect(1) ? 1 : 0;
  }
  CHECK(suspicions == 0);
  CHECK(beats_until_suspect(heartbeats) <= 20);
}

TEST_CASE("heartbeats that become rare raise the threshold before they make a suspect") {
  Heartbeats heartbeats(automatic);
  heartbeats.beat_together(300);
  for (const std::uint64_t gap : {8, 24}) {
    for (int beat = 0; beat < 300; ++beat) {
      Heartbeats::beat(heartbeats.first, gap);
      CHECK_FALSE(heartbeats.first.is_suspect(1));
      heartbeats.second.beat();
    }
    CHECK(heartbeats.first.detector().suspect_after(1) == seconds_of(4 * gap + 1));
  }
}

TEST_CASE("parts of a message over a slow link have a threshold of their own") {
  Heartbeats heartbeats(automatic);
  MirrorWriter mirror(*heartbeats.pair.board, 1);
  heartbeats.beat_together(300);
  for (int message = 0; message < 10; ++message) {
    mirror.begin(message, message);
    for (std::size_t part = 1; part <= 10; ++part) {
      Heartbeats::beat(heartbeats.first, 15);  // and no heartbeat meanwhile
      CHECK_FALSE(heartbeats.first.is_suspect(1));
      mirror.arrived(part);
    }
    mirror.publish(message, message);
    heartbeats.beat_together(100);
    CHECK(heartbeats.first.detector().suspect_after(1) == seconds_of(usual_limit));
  }
  mirror.begin(10, 10);
  heartbeats.first.beat();
  CHECK(heartbeats.first.detector().suspect_after(1) == seconds_of(4 * 15 + 1));
}
