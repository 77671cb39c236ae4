#include "train/record/run_metrics.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace fast;
using train::RoundTally;
using Window = train::RoundTally::Window;

namespace {

const Clock::time_point zero = Clock::now();

PhaseEvent span(Phase phase, int from_ms, int to_ms, int peer = -1) {
  return {phase,
          0,
          0,
          peer,
          zero + std::chrono::milliseconds(from_ms),
          zero + std::chrono::milliseconds(to_ms)};
}

MessageEvent read_at_age(std::int64_t age) {
  return {.kind = MessageEvent::Kind::read, .age = age, .at = zero};
}

}  // namespace

TEST_CASE("phases and waits are added up, a window at a time") {
  RoundTally tally;
  tally.add(span(Phase::step, 0, 100));
  tally.add(span(Phase::wait, 100, 130, 2));
  tally.add(span(Phase::wait, 100, 140));
  tally.add(span(Phase::mix, 140, 150));
  const auto first = tally.take(Window::interval);
  CHECK(first.step_s == Approx(0.1));
  CHECK(first.wait_s == Approx(0.04));
  CHECK(first.mix_s == Approx(0.01));
  CHECK(first.waits_s == std::vector<double>{0, 0, first.waits_s[2]});
  CHECK(first.waits_s[2] == Approx(0.03));
  tally.add(span(Phase::step, 150, 160));
  CHECK(tally.take(Window::interval).step_s == Approx(0.01));
  CHECK(tally.take(Window::interval).step_s == 0);
  CHECK(tally.take(Window::epoch).step_s == Approx(0.11));
}

TEST_CASE("a wait for a single worker within a phase is taken out of it") {
  RoundTally tally;
  tally.add(span(Phase::step, 0, 10));
  tally.add(span(Phase::wait, 12, 15, 1));  // a payload that arrives while others are averaged
  tally.add(span(Phase::mix, 10, 20));
  tally.add(span(Phase::wait, 20, 24, 1));  // a reader that is slow
  tally.add(span(Phase::publish, 20, 25));
  tally.add(span(Phase::wait, 25, 26, 1));
  tally.add(span(Phase::commit, 25, 27));
  const auto all = tally.take(Window::epoch);
  CHECK(all.mix_s == Approx(0.007));
  CHECK(all.publish_s == Approx(0.001));
  CHECK(all.wait_s == Approx(0.008));
  CHECK(all.waits_s[1] == Approx(0.008));
}

TEST_CASE("a worker that joined later is waited for, too") {
  RoundTally tally;
  tally.add(span(Phase::wait, 0, 10, 0));
  CHECK(tally.take(Window::interval).waits_s.size() == 1);
  tally.add(span(Phase::wait, 10, 30, 7));
  for (const Window window : {Window::interval, Window::epoch}) {
    const auto all = tally.take(window);
    REQUIRE(all.waits_s.size() == 8);
    CHECK(all.waits_s[7] == Approx(0.02));
  }
}

TEST_CASE("a wait of another thread runs beside the phases") {
  RoundTally tally;
  tally.add(span(Phase::step, 0, 10));
  std::thread([&] { tally.add(span(Phase::wait, 0, 8, 1)); }).join();
  tally.add(span(Phase::mix, 10, 20));
  const auto all = tally.take(Window::epoch);
  CHECK(all.wait_s == 0);
  CHECK(all.mix_s == Approx(0.01));
  CHECK(all.waits_s[1] == Approx(0.008));
}

TEST_CASE("waits within a step are none of its work") {
  RoundTally tally;
  tally.add(span(Phase::step, 0, 10));
  tally.add_wait_within_step(0.004);
  const auto all = tally.take(Window::interval);
  CHECK(all.step_s == Approx(0.006));
  CHECK(all.wait_s == Approx(0.004));
}

TEST_CASE("ages are those of reads") {
  RoundTally tally;
  CHECK(std::isnan(tally.take(Window::epoch).age_mean()));
  for (const std::int64_t age : {0, 3, 1}) tally.add(read_at_age(age));
  tally.add({.kind = MessageEvent::Kind::published, .age = 50, .at = zero});
  const auto all = tally.take(Window::epoch);
  CHECK(all.age_mean() == Approx(4.0 / 3));
  CHECK(all.age_max == 3);
}

TEST_CASE("what robust averaging has kept is added up by worker") {
  RoundTally tally;
  for (const double kept : {1.0, 0.25})
    tally.add({.kind = MessageEvent::Kind::read, .from = 4, .at = zero, .kept = kept});
  const auto all = tally.take(Window::epoch);
  CHECK(all.kept.at(4).reads == 2);
  CHECK(all.kept.at(4).share == 1.25);
  CHECK(tally.take(Window::epoch).kept.empty());
}
