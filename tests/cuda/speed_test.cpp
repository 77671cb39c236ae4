#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nn/cuda/replay.hpp"
#include "nn/cuda/tuning.hpp"
#include "support/catch.hpp"

using namespace fast::cuda;

TEST_CASE("the fastest way is taken, the first of equals, and none that failed") {
  const auto of = [](const std::vector<std::optional<double>>& times) {
    return fastest(times.size(), [&](std::size_t i, std::optional<double>) { return times[i]; });
  };
  CHECK(of({3}) == 0);
  CHECK(of({3, 1, 2, 1}) == 1);
  CHECK(of({std::nullopt, 5, std::nullopt, 4}) == 3);
  CHECK(of({std::nullopt, std::nullopt}) == 0);
}

TEST_CASE("each way is told the least time so far") {
  std::vector<std::optional<double>> told;
  const std::vector<std::optional<double>> times{std::nullopt, 5, 7, 4, 4};
  fastest(times.size(), [&](std::size_t i, std::optional<double> least) {
    told.push_back(least);
    return times[i];
  });
  CHECK(told == std::vector<std::optional<double>>{std::nullopt, std::nullopt, 5, 5, 4});
}

TEST_CASE("a way that has no rival is not measured") {
  CHECK(fastest(1, [](std::size_t, std::optional<double>) -> std::optional<double> {
          throw std::logic_error("measured");
        }) == 0);
}

TEST_CASE("work is done plainly once, captured once and launched from then on") {
  Replay<int> replay;
  std::string log;
  int captures = 0;
  const auto run = [&](std::uint64_t version) {
    replay.run(
        version, [&] { log += 'p'; },
        [&] {
          log += 'c';
          return ++captures;
        },
        [&](int captured) { log += std::to_string(captured); });
  };
  for (int i = 0; i < 4; ++i) run(0);
  CHECK(log == "pc111");
  for (int i = 0; i < 3; ++i) run(7);  // memory has moved
  CHECK(log == "pc111pc22");
}

TEST_CASE("work with another optimizer's step is captured anew") {
  Replay<int, std::pair<std::uint64_t, std::uint64_t>> replay;
  std::string log;
  const auto run = [&](std::uint64_t optimizer) {
    replay.run(
        {7, optimizer}, [&] { log += 'p'; }, [&] { return static_cast<int>(optimizer); },
        [&](int captured) { log += std::to_string(captured); });
  };
  for (const std::uint64_t optimizer : {0, 0, 0, 1, 1, 1, 2, 2, 0, 0}) run(optimizer);
  CHECK(log == "p00p11p2p0");
}

TEST_CASE("a capture that fails is tried again") {
  Replay<int> replay;
  int tries = 0;
  const auto run = [&] {
    replay.run(
        0, [] {},
        [&]() -> int {
          if (++tries == 1) throw std::runtime_error("not while capturing");
          return 1;
        },
        [](int) {});
  };
  CHECK_NOTHROW(run());
  CHECK_THROWS_WITH(run(), "not while capturing");
  CHECK_NOTHROW(run());
  CHECK(tries == 2);
}
