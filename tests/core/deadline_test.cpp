#include <fast/core/deadline.hpp>
#include <thread>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("a deadline does not count the time in which its process was suspended") {
  const Deadline deadline(Seconds(0.3));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // as a SIGSTOP does
  CHECK_FALSE(deadline.expired());
  CHECK(deadline.elapsed_s() <= 2 * Deadline::longest_step.count());
}

TEST_CASE("a deadline that is looked at expires, one without a limit at once") {
  const auto began = Clock::now();
  const Deadline deadline(Seconds(0.05)), none(Seconds(0));
  CHECK(none.expired());
  while (!deadline.expired()) std::this_thread::yield();
  CHECK(Clock::now() - began >= Seconds(0.05 - 1e-6));  // what rounding may add up to
  CHECK(deadline.elapsed_s() >= 0.05);
}
