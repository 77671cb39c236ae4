#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "worker/scenarios/scenarios.hpp"

using namespace fast;

TEST_CASE("every scenario holds on ranks") {
  const Group group(testing::world());
  for (const auto& scenario : testing::scenarios()) {
    INFO(scenario.name);
    CHECK_NOTHROW(scenario.run(group));
  }
}
