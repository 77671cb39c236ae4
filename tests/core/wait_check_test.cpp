#include <fast/core/deadline.hpp>

#include <atomic>
#include <thread>

#include "core/serial_executor.hpp"
#include "support/catch.hpp"

using namespace fast;

namespace {

struct Stopped {};

void wait_for_a_check() {
  for (int i = 0; i < 10'000; ++i) {
    check_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
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
