#include "sites/clock_ahead.hpp"

#include <algorithm>
#include <random>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;

namespace {

/// An answer of a site whose clock is ahead by so much; the ways there and back took so long.
struct Answer {
  Chunk chunk;
  std::int64_t now_us;
  Answer(std::int64_t at_us, std::int64_t ahead_us, std::int64_t there_us, std::int64_t back_us)
      : chunk{"a", 1, Content::message, 3, 0, false, {}, {}} {
    constexpr std::int64_t worked_us = 700;
    chunk.asked_us = at_us;
    chunk.heard_us = at_us + there_us + ahead_us;
    chunk.sent_us = chunk.heard_us + worked_us;
    now_us = at_us + there_us + worked_us + back_us;
  }
};

}  // namespace

TEST_CASE("another clock is known to half of the shortest time there and back") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::int64_t ahead_us = -2'345'678;
  ClockAhead clock;
  CHECK_FALSE(clock.seconds());
  std::int64_t shortest_us = 1'000'000, at_us = 1'000'000'000;
  for (int k = 0; k < 200; ++k) {
    at_us += 1'000;
    const auto there = static_cast<std::int64_t>(500 + random() % 50'000);
    const auto back = static_cast<std::int64_t>(500 + random() % 50'000);
    const Answer answer(at_us, ahead_us, there, back);
    clock.add(answer.chunk, answer.now_us);
    shortest_us = std::min(shortest_us, there + back);
    REQUIRE(clock.seconds());
    // A second answers for 100 us more.
    CHECK(std::abs(1e6 * *clock.seconds() - static_cast<double>(ahead_us)) <=
          static_cast<double>(shortest_us + 40) / 2);
  }
}

TEST_CASE("an answer that was sent before it was asked for says nothing of a clock") {
  ClockAhead clock;
  Answer answer(1'000'000, 500, 100, 100);
  clock.add(answer.chunk, answer.now_us - 300);  // there and back took less than nothing
  answer.chunk.sent_us = answer.chunk.heard_us - 1;
  clock.add(answer.chunk, answer.now_us);
  CHECK_FALSE(clock.seconds());
}

TEST_CASE("a later answer counts when the clocks may have drifted by more") {
  ClockAhead clock;
  const Answer first(1'000'000'000, 500, 100, 100), late(61'000'000'000, 900, 1'500, 1'500);
  clock.add(first.chunk, first.now_us);
  CHECK(clock.seconds() == Approx(500e-6));
  const Answer soon(1'500'000'000, 900, 40'000, 40'000);
  clock.add(soon.chunk, soon.now_us);
  CHECK(clock.seconds() == Approx(500e-6));
  clock.add(late.chunk, late.now_us);
  CHECK(clock.seconds() == Approx(900e-6));
}

TEST_CASE(
    "another process there has another clock, and what another one here has asked says nothing") {
  ClockAhead clock;
  const Answer first(1'000'000'000, 500, 100, 100);
  clock.add(first.chunk, first.now_us);
  Answer other(1'000'500'000, 7'000, 40'000, 40'000);
  other.chunk.incarnation = 2;
  clock.add(other.chunk, other.now_us, 1'000'500'001);
  CHECK(clock.seconds() == Approx(500e-6));
  clock.add(other.chunk, other.now_us, 1'000'500'000);
  CHECK(clock.seconds() == Approx(7e-3));
}
