#include "membership/periodic_thread.hpp"

#include <atomic>
#include <thread>

#include "support/catch.hpp"

using namespace fast;
using membership::PeriodicThread;

namespace {

void wait_for_ticks(const std::atomic<int>& ticks, int count) {
  for (const Deadline deadline(Seconds(20)); ticks < count && !deadline.expired();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("a ticker calls again and again, tells the time between, and ends when it is destroyed") {
  std::atomic<int> ticks{0};
  std::atomic<double> sum_s{0}, longest_s{0};
  const auto began = Clock::now();
  {
    const PeriodicThread ticker([&](Seconds elapsed) {
      sum_s = sum_s + elapsed.count();
      longest_s = std::max(longest_s.load(), elapsed.count());
      ++ticks;
      return true;
    });
    wait_for_ticks(ticks, 5);
  }
  const double passed_s = Seconds(Clock::now() - began).count();
  const int ended_at = ticks;
  REQUIRE(ended_at >= 5);
  CHECK(sum_s <= passed_s);
  CHECK(sum_s >= 4 * 0.01);  // a hundred times a second at most
  CHECK(longest_s <= 0.2);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(ticks == ended_at);
}

TEST_CASE("a process that stands still for long counts little of that time") {
  std::atomic<int> ticks{0};
  std::atomic<double> longest_s{0};
  const PeriodicThread ticker([&](Seconds elapsed) {
    longest_s = std::max(longest_s.load(), elapsed.count());
    if (++ticks == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return true;
  });
  wait_for_ticks(ticks, 3);
  REQUIRE(ticks >= 3);
  CHECK(longest_s == 0.2);
}
