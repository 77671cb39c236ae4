#include "measure/measured_cluster.hpp"

#include <thread>

#include "support/catch.hpp"

using fast::Seconds;

TEST_CASE("the first step does not count, unless it takes the whole budget") {
  int calls = 0;
  const auto slow_first = [&] {
    if (++calls == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  };
  const tools::StepTimes many = tools::time_steps(slow_first, Seconds(0.2));
  CHECK(calls == 201);  // 200 at most, after the first
  CHECK(many.mean_s < 0.03);
  calls = 0;
  const tools::StepTimes one = tools::time_steps(slow_first, Seconds(0.02));
  CHECK(calls == 1);
  CHECK(one.mean_s >= 0.03);
  CHECK(one.jitter == 0);
}

TEST_CASE("the mean of steps is at least what they sleep") {
  int calls = 0;
  const auto step = [&] {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const tools::StepTimes times = tools::time_steps(step, Seconds(0.05));
  CHECK(times.mean_s >= 0.002);
  CHECK(calls >= 2);
  CHECK(calls <= 27);  // with the one that does not count, and the one that passes the budget
}
