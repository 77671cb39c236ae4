#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

TEST_CASE("golden trajectories through shared windows") {
  const Group group(testing::world());
  int run = 0;
  for (const auto& golden : testing::golden_cases()) {
    if (golden.workers != group.size()) continue;
    ++run;
    CHECK_NOTHROW(testing::run_golden<double>(group, golden, 1e-10));
    CHECK_NOTHROW(testing::run_golden<float>(group, golden, 1e-4));
  }
  REQUIRE(run > 0);
}
