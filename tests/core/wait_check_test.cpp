#include <fast/core/deadline.hpp>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "core/serial_executor.hpp"
#include "core/waits.hpp"
#include "support/catch.hpp"

using namespace fast;

namespace {

struct Stopped {};

void wait_for_a_check() {
  look_until([] { return false; }, Deadline(Seconds(60)), std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("what a check throws leaves the wait") {
  const WaitCheck check([] { throw Stopped(); });
  CHECK_THROWS_AS(wait_for_a_check(), Stopped);
  CHECK_THROWS_AS(check_wait(), Stopped);  // at once
}

TEST_CASE("without a check, with one that has ended, or on another thread a wait goes on") {
  const auto wait = [] {
    for (int i = 0; i < 150; ++i) {
      check_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  CHECK_NOTHROW(wait());
  {
    const WaitCheck ended([] { throw Stopped(); });
  }
  CHECK_NOTHROW(wait());
  const WaitCheck check([] { throw Stopped(); });
  std::atomic<bool> goes_on = false;
  std::thread([&] {
    wait();
    goes_on = true;
  }).join();
  CHECK(goes_on);
}

TEST_CASE("of two checks both are called, and one of them may wait itself") {
  int calls = 0;
  const WaitCheck outer([&] {
    if (++calls == 2) throw Stopped();
  });
  const WaitCheck inner([] { check_wait(); });
  CHECK_THROWS_AS(wait_for_a_check(), Stopped);
  CHECK(calls == 2);
}

TEST_CASE("a look happens before the deadline counts, and ends the wait with the first news") {
  int looks = 0;
  const auto third = [&] { return ++looks == 3; };
  CHECK(look_until(third, Deadline(without_limit), std::chrono::microseconds(1)));
  CHECK(looks == 3);
  CHECK(look_until([] { return true; }, Deadline(Seconds(0)), std::chrono::hours(1)));
  CHECK_FALSE(look_until([] { return false; }, Deadline(Seconds(0)), std::chrono::hours(1)));
}

TEST_CASE("of the ranks that have lost others the lowest one has none below it") {
  using Ranks = std::vector<int>;
  CHECK(living_below(0, Ranks{2}) == 0);
  CHECK(living_below(3, Ranks{1}) == 2);
  CHECK(living_below(3, Ranks{2, 0, 1, 1}) == 0);
  CHECK(living_below(3, std::set<int>{4}) == 3);
}

TEST_CASE("a wait for a background thread's task ends, and the task goes on") {
  std::atomic<bool> released = false, done = false;
  {
    SerialExecutor executor;
    const auto number = executor.submit([&] {
      while (!released) std::this_thread::yield();
      done = true;
    });
    const WaitCheck check([] { throw Stopped(); });
    CHECK_THROWS_AS(executor.wait(number), Stopped);
    CHECK_THROWS_AS(executor.wait(number, Deadline(Seconds(300))), Stopped);
    CHECK_FALSE(done);
    released = true;
  }
  CHECK(done);
}
