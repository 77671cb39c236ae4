#include <exchange/courier.hpp>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"

using fast::exchange::Courier;

TEST_CASE("a courier runs errands in their order, on a thread of its own") {
  std::string done;
  const auto here = std::this_thread::get_id();
  bool elsewhere = false;
  {
    Courier courier;
    courier.send([&] { elsewhere = std::this_thread::get_id() != here; });
    courier.run([&] { done += "a"; });
    CHECK(done == "a");
    CHECK(elsewhere);
    for (const char* name : {"b", "c", "d"}) courier.send([&done, name] { done += name; });
  }
  CHECK(done == "abcd");
}

TEST_CASE("a courier waits for no errand behind the one that is asked for") {
  std::latch asked(1);
  std::atomic<bool> late = false;
  Courier courier;
  const auto first = courier.send([] {});
  const auto second = courier.send([&] {
    asked.wait();
    late = true;
  });
  courier.wait(first);
  CHECK_FALSE(late);
  asked.count_down();
  courier.wait(second);
  CHECK(late);
}

TEST_CASE("what an errand throws is thrown by the next wait, once, and others are run still") {
  Courier courier;
  bool ran = false;
  courier.send([] { throw std::runtime_error("first"); });
  courier.send([] { throw std::runtime_error("second"); });
  CHECK_THROWS_WITH(courier.run([&] { ran = true; }), "first");
  CHECK(ran);
  CHECK_NOTHROW(courier.run([] {}));
}
