#include <fast/exchange/local.hpp>

#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace fast;

TEST_CASE("golden trajectories on threads") {
  const auto cases = testing::golden_cases();
  REQUIRE(cases.size() >= 17);
  for (const auto& golden : cases) {
    CHECK_NOTHROW(local::run(golden.workers, [&](const Group& group) {
      testing::run_golden<double>(group, golden, 1e-10);
      testing::run_golden<float>(group, golden, 1e-4);
    }));
  }
}
