#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>

#include "core/serial_executor.hpp"
#include "support/catch.hpp"

using fast::SerialExecutor;

TEST_CASE("an executor runs tasks in their order, on a thread of its own") {
  std::string done;
  const auto here = std::this_thread::get_id();
  bool elsewhere = false;
  {
    SerialExecutor executor;
    executor.submit([&] { elsewhere = std::this_thread::get_id() != here; });
    executor.run([&] { done += "a"; });
    CHECK(done == "a");
    CHECK(elsewhere);
    for (const char* name : {"b", "c", "d"}) executor.submit([&done, name] { done += name; });
  }
  CHECK(done == "abcd");
}

TEST_CASE("an executor waits for no task behind the one that is asked for") {
  std::latch asked(1);
  std::atomic<bool> late = false;
  SerialExecutor executor;
  const auto first = executor.submit([] {});
  const auto second = executor.submit([&] {
    asked.wait();
    late = true;
  });
  executor.wait(first);
  CHECK_FALSE(late);
  asked.count_down();
  executor.wait(second);
  CHECK(late);
}

TEST_CASE("what a task throws is thrown by the next wait, once, and others are run still") {
  SerialExecutor executor;
  bool ran = false;
  executor.submit([] { throw std::runtime_error("first"); });
  executor.submit([] { throw std::runtime_error("second"); });
  CHECK_THROWS_WITH(executor.run([&] { ran = true; }), "first");
  CHECK(ran);
  CHECK_NOTHROW(executor.run([] {}));
}

TEST_CASE("an executor waits for a task up to a deadline") {
  std::latch asked(1);
  SerialExecutor executor;
  const auto number = executor.submit([&] { asked.wait(); });
  CHECK_FALSE(executor.wait(number, fast::Deadline(fast::Seconds(0.1))));
  asked.count_down();
  CHECK(executor.wait(number, fast::Deadline(fast::Seconds(30))));
}

TEST_CASE("a task that pauses goes on when another is submitted") {
  SerialExecutor executor;
  bool first_pause = true, second_pause = false;
  const auto number = executor.submit([&] {
    first_pause = executor.pause(fast::Seconds(0.01));
    second_pause = executor.pause(fast::Seconds(30));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  executor.submit([] {});
  executor.wait(number);
  CHECK(second_pause);
}
