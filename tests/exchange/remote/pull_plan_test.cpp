#include "exchange/remote/pull/pull_plan.hpp"

#include "exchange/pair.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

/// Worker 1 reads worker 0 in even rounds. The header of worker 0 is given by hand.
struct Planned {
  explicit Planned(std::int64_t staleness) : staleness_(staleness) {}

  Pair pair{64};
  std::int64_t staleness_;
  RemoteEdges edges{pair.board,
                    Pair::reader_rank,
                    [](std::int64_t round) {
                      return round % 2 == 0 ? RoundEdges{{Pair::writer_rank}, {}} : RoundEdges{};
                    },
                    staleness_,
                    Throttle(),
                    SendBuffers(pair.board, Pair::reader_rank)};
  PullPlan plan{edges, Pair::writer_rank};
  WorkerHeader seen{};

  void publish(std::int64_t first, std::int64_t last) {
    const std::uint64_t sequence = ++seen.publication.sequence;
    seen.publication.rounds[sequence % slot_count] = first;
    seen.publication.until[sequence % slot_count] = last;
  }
  void copied(const PullTarget& target) {
    plan.note(target, PullPlan::Outcome::valid, Seconds(0.001));
  }
  /// The worker keeps a copy of its newest publication.
  void keep(std::int64_t first, std::int64_t last) {
    seen.kept.sequence = seen.publication.sequence.load();
    seen.kept.first = first;
    seen.kept.until = last;
  }
  void consume(std::int64_t rounds) const {
    pair.board->header(Pair::reader_rank).reading.consumed = rounds;
  }
};

}  // namespace

TEST_CASE("at staleness 0 a reader pulls each round that it reads, no further than the next one") {
  Planned run(0);
  CHECK_FALSE(run.plan.choose(run.seen));
  for (std::int64_t round = 0; round < 3; ++round) run.publish(round, round);
  auto target = run.plan.choose(run.seen);
  REQUIRE(target);
  CHECK(target->sequence == 1);
  CHECK(target->first == 0);
  CHECK_FALSE(target->skipped);
  CHECK(run.plan.check(*target, run.seen) == PullPlan::Outcome::valid);
  run.copied(*target);
  CHECK_FALSE(run.plan.choose(run.seen));  // round 1 is not read, round 2 is too far ahead
  CHECK(run.plan.has_more(run.seen));
  run.consume(1);
  target = run.plan.choose(run.seen);
  REQUIRE(target);
  CHECK(target->last == 2);
  run.copied(*target);
  CHECK_FALSE(run.plan.has_more(run.seen));
}

TEST_CASE("at staleness 0 the newest publication replaces a round that the publisher skipped") {
  Planned run(0);
  run.publish(4, 4);
  run.publish(6, 8);
  const auto target = run.plan.choose(run.seen);
  REQUIRE(target);
  CHECK(target->sequence == 2);
  CHECK(target->last == 8);
  CHECK(target->skipped == 0);
  CHECK(run.plan.check(*target, run.seen) == PullPlan::Outcome::valid);
  run.seen.publication.rounds[1] = 0;  // the later read of the header finds the round
  CHECK(run.plan.check(*target, run.seen) == PullPlan::Outcome::not_skipped);
}

TEST_CASE("above staleness 0 a reader pulls the newest publication, each once") {
  Planned run(3);
  for (std::int64_t round = 0; round < 5; ++round) run.publish(round, round);
  auto target = run.plan.choose(run.seen);
  REQUIRE(target);
  CHECK(target->sequence == 5);
  run.copied(*target);
  CHECK_FALSE(run.plan.choose(run.seen));
  CHECK_FALSE(run.plan.has_more(run.seen));
  run.seen.publication.until[5 % slot_count] = 6;  // the same payload for further rounds
  target = run.plan.choose(run.seen);
  REQUIRE(target);
  CHECK(target->last == 6);
}

TEST_CASE("a copy counts while its slot cannot have been written again") {
  for (const std::int64_t staleness : {0, 3}) {
    const std::uint64_t most_later = staleness == 0 ? 2 : 1;
    Planned run(staleness);
    run.publish(0, 0);
    const auto target = run.plan.choose(run.seen);
    REQUIRE(target);
    for (std::uint64_t later = 0; later <= slot_count; ++later) {
      const auto expected =
          later <= most_later ? PullPlan::Outcome::valid : PullPlan::Outcome::overwritten;
      CHECK(run.plan.check(*target, run.seen) == expected);
      run.publish(static_cast<std::int64_t>(later) + 1, static_cast<std::int64_t>(later) + 1);
    }
  }
}

TEST_CASE("a slot that is being written is not chosen, and a copy of it does not count") {
  Planned run(3);
  run.publish(0, 0);
  const auto target = run.plan.choose(run.seen);
  REQUIRE(target);
  run.seen.publication.rounds[1] = being_written;
  CHECK_FALSE(run.plan.choose(run.seen));
  CHECK_FALSE(newest_publication(run.seen));
  CHECK(run.plan.check(*target, run.seen) == PullPlan::Outcome::overwritten);
}

TEST_CASE("a reader whose slots are overwritten takes kept copies, and then tries a slot again") {
  const auto start = Clock::now();
  const auto at = [start](double ms) {
    return start + std::chrono::duration_cast<Clock::duration>(Seconds(ms / 1e3));
  };
  const Seconds read_took(0.008);
  Planned run(unbounded_staleness);
  run.publish(0, 0);
  auto target = run.plan.choose(run.seen, at(0));
  REQUIRE(target);
  CHECK_FALSE(target->kept);
  CHECK(run.plan.pace().slow_read() == Seconds(0));
  for (std::int64_t round = 1; round < 9; ++round) run.publish(round, round);
  CHECK(run.plan.check(*target, run.seen) == PullPlan::Outcome::overwritten);
  run.plan.note(*target, PullPlan::Outcome::overwritten, read_took);
  CHECK(run.plan.pace().slow_read() == read_took);

  // While there is no copy, slots are all there is.
  target = run.plan.choose(run.seen, at(8));
  REQUIRE(target);
  CHECK_FALSE(target->kept);
  run.keep(8, 8);
  for (std::int64_t copy = 0; copy < 16; ++copy) {
    const double ms = 10 + 20 * static_cast<double>(copy);
    run.publish(9 + copy, 9 + copy);
    target = run.plan.choose(run.seen, at(ms));
    REQUIRE(target);
    CHECK(target->kept);
    CHECK(target->last == 8 + copy);
    CHECK(run.plan.check(*target, run.seen) == PullPlan::Outcome::valid);
    run.copied(*target);
    if (copy < 15) CHECK_FALSE(run.plan.choose(run.seen, at(ms + 0.5)));  // each once
    run.keep(9 + copy, 9 + copy);
  }
  run.publish(30, 30);
  target = run.plan.choose(run.seen, at(400));
  REQUIRE(target);
  CHECK_FALSE(target->kept);
  run.copied(*target);
  CHECK(run.plan.pace().slow_read() == Seconds(0));  // slots last long enough again
}

TEST_CASE("a slot is read when its worker has published nothing for as long as a read takes") {
  const auto start = Clock::now();
  Planned run(unbounded_staleness);
  run.publish(0, 0);
  run.keep(0, 0);
  run.publish(1, 1);
  run.plan.note({1, 0, 0, std::nullopt}, PullPlan::Outcome::overwritten, Seconds(0.01));
  auto target = run.plan.choose(run.seen, start);
  REQUIRE(target);
  CHECK(target->kept);
  run.plan.note(*target, PullPlan::Outcome::valid, Seconds(0.01));
  CHECK_FALSE(run.plan.choose(run.seen, start + std::chrono::milliseconds(5)));
  target = run.plan.choose(run.seen, start + std::chrono::milliseconds(11));
  REQUIRE(target);
  CHECK_FALSE(target->kept);
  CHECK(target->last == 1);
}

TEST_CASE("a reader whose copy has no keeper any more, or whose publisher has ended, reads slots") {
  const auto start = Clock::now();
  for (const bool ends : {false, true}) {
    Planned run(unbounded_staleness);
    run.publish(0, 0);
    run.keep(0, 0);
    run.plan.note({1, 0, 0, std::nullopt}, PullPlan::Outcome::overwritten, Seconds(0.01));
    auto target = run.plan.choose(run.seen, start);
    REQUIRE(target);
    run.copied(*target);
    if (ends) run.seen.life.status = static_cast<std::uint32_t>(WorkerStatus::finished);
    std::optional<int> read_at_ms;
    for (int ms = 1; ms < 60 && !read_at_ms; ++ms) {
      run.publish(ms, ms);
      CHECK(run.plan.has_more(run.seen));  // so its end is not told before
      target = run.plan.choose(run.seen, start + std::chrono::milliseconds(ms));
      if (target) read_at_ms = ms;
    }
    REQUIRE(target);
    CHECK_FALSE(target->kept);
    CHECK(read_at_ms == (ends ? 1 : 4));  // copied() has taken 1 ms
  }
}

TEST_CASE("a kept copy that was replaced while it was read does not count") {
  Planned run(unbounded_staleness);
  run.publish(0, 0);
  run.keep(0, 0);
  const PullTarget target{1, 0, 0, std::nullopt, true};
  CHECK(run.plan.check(target, run.seen) == PullPlan::Outcome::valid);
  run.seen.kept.first = being_written;
  CHECK(run.plan.check(target, run.seen) == PullPlan::Outcome::overwritten);
  run.publish(1, 1);
  run.keep(1, 1);
  CHECK(run.plan.check(target, run.seen) == PullPlan::Outcome::overwritten);
  run.plan.note(target, PullPlan::Outcome::overwritten, Seconds(0.01));
  run.plan.note(target, PullPlan::Outcome::overwritten, Seconds(0.01));
  CHECK(run.plan.pace().slow_read() == Seconds(0.02));  // copies are to stay longer
}
