#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/simulation/workload.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using namespace fast::simulation;
using Catch::Matchers::Contains;

namespace {

constexpr auto before = algorithm::PublishPoint::before_step;
constexpr auto after = algorithm::PublishPoint::after_step;

TransferTime always(double seconds) {
  return [seconds](std::int64_t, int, int, double) { return seconds; };
}

/// latency + bytes / bandwidth
TransferTime link(double latency_s, double bandwidth) {
  return
      [=](std::int64_t, int, int, double size_bytes) { return latency_s + size_bytes / bandwidth; };
}

Workload constant(const TopologyRule& rule, int workers, double step_s) {
  Workload load{rule.make(workers)};
  load.work.seconds = step_s;
  load.rounds = 40;
  return load;
}

Workload allreduce(Pattern pattern, int workers, double payload_bytes) {
  Workload load = constant(stencil::ring(), workers, 1);
  load.pattern = pattern;
  load.payload_bytes = payload_bytes;
  return load;
}

/// 16 workers of a ring, of which one fails once, is suspected 2 s later and back after 60.3 s.
Workload with_one_failure() {
  Workload load = constant(stencil::ring(), 16, 1);
  load.rounds = 160;
  load.failures = {.per_worker_hour = 2, .absent_s = 60.3, .suspect_after_s = 2, .seed = 1};
  return load;
}

/// What part of its step passes before the worker fails, in a run with one failure.
double only_failure(const Workload& load) {
  std::vector<double> shares;
  for (int i = 0; i < load.schedule.workers(); ++i) {
    for (std::int64_t r = 0; r < load.rounds; ++r) {
      const double share = load.failures.fails_after(i, r, load.work.seconds);
      if (share >= 0) shares.push_back(share);
    }
  }
  REQUIRE(shares.size() == 1);
  return shares.front();
}

}  // namespace

TEST_CASE("a synchronous round before the step lasts as long as the longer of step and message") {
  for (const double message_s : {0.25, 1.0, 3.0}) {
    const RoundFigures found = recur(constant(stencil::ring(), 12, 1), always(message_s));
    CHECK(found.median_s == Approx(std::max(1.0, message_s)));
    CHECK(found.total_s == Approx(40 * std::max(1.0, message_s)));
    CHECK(found.waiting_share == Approx(1 - 1 / std::max(1.0, message_s)).margin(1e-12));
    CHECK(*found.fresh_share == 1);
  }
}

TEST_CASE("a synchronous round after the step lasts as long as step and message") {
  Workload load = constant(stencil::torus2d(), 12, 1);
  load.publish_point = after;
  CHECK(recur(load, always(0.25)).median_s == Approx(1.25));
}

TEST_CASE("unbounded staleness does not wait, and ages are how late messages are") {
  Workload load = constant(stencil::ring(), 8, 1);
  load.staleness = unbounded_staleness;
  load.rounds = 1000;
  load.work.slow[3] = 2;
  const RoundFigures found = recur(load, always(0.5));
  CHECK(found.waiting_share == 0);
  CHECK(found.median_s == Approx(1));
  CHECK(found.total_s == Approx(2000));
  // Messages of 2.5 steps: sent at 0, 2.5, 5, ...; a reader in round r finds what began at or
  // before r + 1 - 2.5.
  Workload late = constant(stencil::ring(), 8, 1);
  late.staleness = unbounded_staleness;
  late.rounds = 1000;
  const RoundFigures aged = recur(late, always(2.5));
  // The rounds 2k .. repeat every 5 steps: publications 0, 2, 5, 7, 10 arrive at 2.5, 5, 7.5, ...
  // Readers at 5, 6, 7, 8, 9 have 2, 2, 2, 5, 5, in rounds 4 to 8: ages 2, 3, 4, 2, 3.
  CHECK(aged.mean_age == Approx((2 + 3 + 4 + 2 + 3) / 5.0).epsilon(0.02));
  CHECK(*aged.fresh_share == Approx(0).margin(0.01));
}

TEST_CASE("at unbounded staleness, a worker waits once for the first message of each source") {
  Workload load = constant(stencil::ring(), 8, 1);
  load.staleness = unbounded_staleness;
  for (const auto point : {before, after}) {
    load.publish_point = point;
    const RoundFigures found = recur(load, always(2.5));
    CHECK(found.total_s == Approx(2.5 + 39));
    CHECK(found.left_out == 0);
  }
  // Another source in each of three rounds. Each begins to send in the round before, so that the
  // first three rounds end at 2.5, 3.5 and 2.5 + 2.5.
  Workload hops = constant(schedule::one_peer_exponential(), 8, 1);
  hops.staleness = unbounded_staleness;
  const RoundFigures found = recur(hops, always(2.5));
  CHECK(found.total_s == Approx(5 + 37));
  CHECK(found.left_out == 0);
}

TEST_CASE("above staleness 0, a source's first weights serve the first rounds") {
  // Worker 3 is slow. Its neighbors publish after the step, and read its first weights in the
  // rounds 0 and 1. Their round 2 waits for its round 1.
  Workload load = constant(stencil::ring(), 8, 1);
  load.publish_point = after;
  load.work.slow[3] = 100;
  load.rounds = 2;
  load.staleness = 1;
  CHECK(recur(load, always(0)).waiting_share == 0);
  load.rounds = 3;
  const RoundFigures found = recur(load, always(0));
  CHECK(found.total_s == Approx(300));
  CHECK(found.waiting_share == Approx(2 * 197 / (300 + 2 * 200 + 5 * 3.0)));
}

TEST_CASE("a bound of one step hides messages of up to two steps") {
  Workload load = constant(stencil::ring(), 8, 1);
  load.staleness = 1;
  // Messages start when the one before has arrived: of 1.0 s they are the age of one round.
  const RoundFigures hidden = recur(load, always(1));
  CHECK(hidden.median_s == Approx(1));
  CHECK(hidden.waiting_share == Approx(0).margin(1e-12));
  // Of 3 s: every other publication is sent, and each message serves one round at least.
  const RoundFigures slow = recur(load, always(3));
  CHECK(slow.mean_s > 1.2);
  CHECK(slow.mean_s <= 3.0 + 1e-9);
}

TEST_CASE("messages are of the round in which their reader reads their source") {
  for (const std::int64_t staleness : {0, 1, 3}) {
    Workload load = constant(schedule::base(1), 10, 1);
    load.staleness = staleness;
    load.work.jitter = 0.3;
    int messages = 0;
    recur(load, [&](std::int64_t round, int from, int to, double) {
      const std::vector<int> sources = load.schedule.at(round).in_neighbors(to);
      INFO("staleness " << staleness << ", round " << round << ", " << from << " to " << to);
      CHECK(std::ranges::find(sources, from) != sources.end());
      ++messages;
      return 0.4;
    });
    CHECK(messages > 0);
  }
}

TEST_CASE("the slowest worker sets the pace of bounded staleness, and delays spread by hops") {
  Workload load = constant(stencil::ring(), 9, 1);
  load.work.slow[4] = 1.5;
  load.rounds = 200;
  for (const std::int64_t staleness : {0, 2}) {
    load.staleness = staleness;
    const RoundFigures found = recur(load, always(0));
    CHECK(found.total_s == Approx(1.5 * 200));
  }
  // Without exchange nobody waits for it.
  load.pattern = Pattern::nobody;
  CHECK(recur(load, always(0)).median_s == Approx(1));
}

TEST_CASE("rounds with jitter are the naive recurrence over all workers") {
  const std::uint64_t seed = test_seed(20);
  INFO("seed " << seed);
  Rng rng(seed);
  for (int trial = 0; trial < 20; ++trial) {
    const int workers = 3 + static_cast<int>(rng.below(12));
    Workload load =
        constant(trial % 2 == 0 ? stencil::ring() : schedule::one_peer_exponential(), workers, 1);
    load.work.jitter = rng.uniform(0, 0.5);
    load.work.seed = rng();
    load.publish_point = rng.below(2) == 0 ? before : after;
    load.rounds = 12;
    const double message_s = rng.uniform(0, 1.5);
    // An independent statement of staleness 0, without the order of messages on an edge: that can
    // only delay. A symmetric static graph needs none, as a reader has read before the next
    // message.
    std::vector<double> now(static_cast<std::size_t>(workers), 0);
    for (std::int64_t r = 0; r < load.rounds; ++r) {
      const Topology topology = load.schedule.at(r);
      std::vector<double> next(now.size());
      for (int i = 0; i < workers; ++i) {
        const auto published = [&](int j) {
          const double step_s = load.publish_point == after ? load.work.of(j, r) : 0;
          return now[static_cast<std::size_t>(j)] + step_s;
        };
        double ready = now[static_cast<std::size_t>(i)] + load.work.of(i, r);
        for (const int j : topology.in_neighbors(i))
          ready = std::max(ready, published(j) + message_s);
        next[static_cast<std::size_t>(i)] = ready;
      }
      now = std::move(next);
    }
    const double expected = *std::max_element(now.begin(), now.end());
    INFO("trial " << trial << ", " << workers << " workers");
    if (load.schedule.is_static()) {
      CHECK(recur(load, always(message_s)).total_s == Approx(expected));
    } else {
      CHECK(recur(load, always(message_s)).total_s >= Approx(expected));
    }
  }
}

TEST_CASE("a directed writer does not overtake its reader by more than its slots") {
  // Worker 0 reads nobody; worker 1 reads it and is slow.
  Workload load{Topology("pair", std::vector<std::vector<int>>{{}, {0}})};
  load.work.seconds = 1;
  load.work.slow[1] = 10;
  load.rounds = 20;
  const RoundFigures found = recur(load, always(0));
  // Round r of the writer begins when round r - 3 of the reader is over: at 10 (r - 2). Its last
  // round ends at 10 (19 - 2) + 1, the reader's at 200.
  CHECK(found.total_s == Approx(200));
  CHECK(found.waiting_share == Approx((171.0 - 20) / (171 + 200)).epsilon(1e-6));
}

TEST_CASE("all-reduces take the known times") {
  const double latency_s = 1e-3, bandwidth = 1e6, payload = 4e6;
  const RoundFigures ring =
      recur(allreduce(Pattern::ring_allreduce, 8, payload), link(latency_s, bandwidth));
  CHECK(ring.median_s == Approx(1 + 2.0 * 7 / 8 * payload / bandwidth + 14 * latency_s));
  const RoundFigures doubling =
      recur(allreduce(Pattern::doubling_allreduce, 8, payload), link(latency_s, bandwidth));
  CHECK(doubling.median_s == Approx(1 + 3 * (payload / bandwidth + latency_s)));
  const RoundFigures halving =
      recur(allreduce(Pattern::halving_allreduce, 8, payload), link(latency_s, bandwidth));
  CHECK(halving.median_s == Approx(1 + 2.0 * 7 / 8 * payload / bandwidth + 6 * latency_s));
  CHECK(recur(allreduce(Pattern::nobody, 8, payload), link(latency_s, bandwidth)).median_s == 1);
}

TEST_CASE("workers beyond a power of two give their payload first and get the result at the end") {
  const double latency_s = 1e-3, bandwidth = 1e6, payload = 4e6;
  const double whole_s = payload / bandwidth + latency_s;
  // Six workers: four that exchange, and two that give and get.
  const RoundFigures doubling =
      recur(allreduce(Pattern::doubling_allreduce, 6, payload), link(latency_s, bandwidth));
  CHECK(doubling.total_s == Approx(40 * (1 + 4 * whole_s)));
  const RoundFigures halving =
      recur(allreduce(Pattern::halving_allreduce, 6, payload), link(latency_s, bandwidth));
  const double exchanges_s = 2.0 * 3 / 4 * payload / bandwidth + 4 * latency_s;
  CHECK(halving.total_s == Approx(40 * (1 + 2 * whole_s + exchanges_s)));
}

TEST_CASE("workers of a power of two send 2 (N-1)/N payloads in a ring and by halving") {
  for (const int workers : {2, 4, 8, 32}) {
    for (const Pattern pattern : {Pattern::ring_allreduce, Pattern::halving_allreduce}) {
      std::vector<double> sent(static_cast<std::size_t>(workers), 0);
      Workload load = allreduce(pattern, workers, 1e6);
      load.rounds = 3;
      recur(load, [&](std::int64_t, int from, int, double size_bytes) {
        sent[static_cast<std::size_t>(from)] += size_bytes;
        return 1.0;
      });
      INFO(workers << " workers, " << name(pattern));
      for (const double each : sent) CHECK(each == Approx(3 * 2 * (workers - 1.0) / workers * 1e6));
    }
  }
}

TEST_CASE("all-reduces of many workers take the same closed form as those of few") {
  Workload many = allreduce(Pattern::ring_allreduce, 20'000, 1e6);
  many.rounds = 3;
  CHECK(recur(many, link(1e-5, 1e6)).median_s ==
        Approx(1 + 2.0 * 19'999 / 20'000 + 2 * 19'999 * 1e-5));
  many = allreduce(Pattern::halving_allreduce, 1 << 19, 1e6);  // too many messages to follow each
  many.rounds = 11;
  const double workers = 1 << 19;
  CHECK(recur(many, link(1e-5, 1e6)).median_s == Approx(1 + 2 * (workers - 1) / workers + 38e-5));
}

TEST_CASE(
    "neighbors of an absent worker wait until they suspect it, all-reduces until it is back") {
  Workload load = constant(stencil::ring(), 8, 1);
  load.rounds = 400;
  load.failures = {.per_worker_hour = 3, .absent_s = 100, .suspect_after_s = 2, .seed = 5};
  const RoundFigures ring = recur(load, always(0.1));
  load.pattern = Pattern::ring_allreduce;
  const RoundFigures together = recur(load, always(0));
  REQUIRE(together.failures > 0);
  // Every absence that does not overlap another one costs all of its time.
  CHECK(together.total_s >= 400 + 100);
  REQUIRE(ring.failures > 0);
  CHECK(ring.left_out > 0);
  CHECK(ring.median_s == Approx(1));
  CHECK(ring.total_s < together.total_s);
}

TEST_CASE("a worker that is back goes on in the round of its neighbors") {
  // It fails in round f, after the part x of its step. Its neighbors suspect it at f + x + 2, and
  // end a round then, and one in each second after that. It is back 0.3 s after the last of them.
  Workload load = with_one_failure();
  const double part_s = only_failure(load);
  // Before the step: round f + 1 has ended at f + x + 2. The worker publishes at once, and ends its
  // step 0.3 s after its neighbors.
  const RoundFigures early = recur(load, always(0));
  CHECK(early.total_s == Approx(160 + part_s + 0.3).epsilon(1e-12));
  CHECK(early.left_out == 2 * 59);
  // After the step: round f has ended at f + x + 2. The neighbors wait 0.3 s for the worker's step.
  load.publish_point = after;
  const RoundFigures late = recur(load, always(0));
  CHECK(late.total_s == Approx(160 + 1 + part_s + 0.3).epsilon(1e-12));
  CHECK(late.left_out == 2 * 59);
}

TEST_CASE("above staleness 0, nobody reads the last publication of a suspect again") {
  // Rounds are whole seconds. The worker fails in round f, after more than 0.7 s. Neighbors read it
  // in the rounds f and f + 1, and again from round f + 61 on, in which it is back.
  Workload load = with_one_failure();
  REQUIRE(only_failure(load) > 0.7);
  for (const std::int64_t staleness : {std::int64_t{1}, std::int64_t{4}, unbounded_staleness}) {
    INFO(staleness);
    load.staleness = staleness;
    const RoundFigures found = recur(load, always(0));
    CHECK(found.total_s == Approx(160 + only_failure(load) - 0.7));
    CHECK(found.left_out == 2 * 59);
  }
}

TEST_CASE("a writer waits for a slot of an absent reader until it suspects the reader") {
  // A failure costs the others the time until they suspect the worker, and the part of its step.
  for (const TopologyRule& rule : {stencil::ring(true), schedule::one_peer_exponential()}) {
    for (const auto point : {before, after}) {
      Workload load = constant(rule, 16, 1);
      load.rounds = 300;
      load.publish_point = point;
      load.failures = {.per_worker_hour = 2, .absent_s = 60, .suspect_after_s = 2, .seed = 1};
      const RoundFigures found = recur(load, always(0));
      INFO(load.schedule.name() << ", " << found.failures << " failures");
      REQUIRE(found.failures > 0);
      CHECK(found.total_s >= 300);
      CHECK(found.total_s <= 300 + 3.0 * static_cast<double>(found.failures));
    }
  }
}

TEST_CASE("numbers out of range are refused") {
  Workload load = constant(stencil::ring(), 4, 1);
  load.work.seconds = 0;
  CHECK_THROWS_WITH(recur(load, always(0)), Contains("they take time"));
  load.work.seconds = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(recur(load, always(0)), Contains("they take time, and end"));
  load.work.seconds = 1;
  load.work.slow[9] = 2;
  CHECK_THROWS_WITH(recur(load, always(0)), Contains("workers are 0 to 3"));
  load.work.slow.clear();
  load.rounds = 0;
  CHECK_THROWS_WITH(recur(load, always(0)), Contains("at least 1"));
  CHECK_THROWS_WITH(pattern_by_name("rnig"), Contains("did you mean \"ring\""));
}

TEST_CASE("100,000 workers are possible") {
  Workload load = constant(stencil::torus2d(), 100'000, 1);
  load.rounds = 3;
  CHECK(recur(load, always(2)).total_s == Approx(6));
}
