#include <algorithm>
#include <fast/exchange/local.hpp>

#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace fast;

TEST_CASE("golden trajectories on threads") {
  const auto cases = testing::golden_cases();
  REQUIRE(cases.size() >= 17);
  CHECK(std::ranges::count(cases, "awc_gasloc", &testing::GoldenCase::algorithm) == 6);
  for (const char* rule : {"edm", "gut", "a2cid2"})
    CHECK(std::ranges::count(cases, rule, &testing::GoldenCase::algorithm) == 4);
  CHECK(std::ranges::count(cases, "averaged_momentum", &testing::GoldenCase::algorithm) == 8);
  CHECK(std::ranges::count(cases, "relay_sum", &testing::GoldenCase::algorithm) == 6);
  for (const auto& golden : cases) {
    CHECK_NOTHROW(local::run(golden.workers, [&](const Group& group) {
      testing::run_golden<double>(group, golden, 1e-10);
      testing::run_golden<float>(group, golden, 1e-4);
    }));
  }
}

// A rounding to few bits in floats may go the other way than in doubles.
TEST_CASE("golden trajectories with coded messages, and with unequal numbers of local steps") {
  int coded = 0, exact_ones = 0;
  for (const auto& golden : testing::extra_golden_cases()) {
    const bool exact = golden.codec == "identity";
    ++(exact ? exact_ones : coded);
    CHECK_NOTHROW(local::run(golden.workers, [&](const Group& group) {
      testing::run_golden<double>(group, golden, 1e-10);
      if (exact) testing::run_golden<float>(group, golden, 1e-4);
    }));
  }
  CHECK(coded >= 9);
  CHECK(exact_ones >= 11);
}
