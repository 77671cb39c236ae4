#include "core/thread_crew.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <stdexcept>

#include "support/catch.hpp"

using fast::ThreadCrew;

TEST_CASE("a crew makes each part once, in loop after loop") {
  for (const int threads : {1, 2, 5}) {
    ThreadCrew crew(threads);
    for (const std::size_t count : {0, 1, 3, 200}) {
      std::vector<std::atomic<int>> made(count);
      for (int loop = 1; loop <= 50; ++loop) {
        crew.each(count, [&](std::size_t part) { ++made[part]; });
        REQUIRE(std::ranges::all_of(made, [&](const auto& times) { return times == loop; }));
      }
    }
  }
}

TEST_CASE("the threads of a crew work at the same time") {
  ThreadCrew crew(3);
  std::atomic<int> there = 0, met = 0;
  crew.each(3, [&](std::size_t) {
    ++there;
    const fast::Deadline deadline(fast::Seconds(60));
    while (there < 3 && !deadline.expired()) std::this_thread::yield();
    met += there == 3;
  });
  CHECK(met == 3);
}

TEST_CASE("an exception ends a crew's loop, and the next one is as any other") {
  for (const int threads : {1, 4}) {
    ThreadCrew crew(threads);
    std::atomic<int> made = 0;
    const auto fails = [&](std::size_t part) {
      ++made;
      if (part == 0) throw std::runtime_error("part 0");
    };
    CHECK_THROWS_WITH(crew.each(1'000'000'000, fails), "part 0");
    CHECK(made < 1'000'000'000);
    made = 0;
    crew.each(7, [&](std::size_t) { ++made; });
    CHECK(made == 7);
  }
}
