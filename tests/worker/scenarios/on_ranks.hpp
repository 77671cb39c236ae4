// Runs scenarios on the ranks of a program under mpiexec.
#pragma once

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "worker/scenarios/scenarios.hpp"

namespace fast::testing {

inline void hold_on_ranks(const std::vector<NamedScenario>& scenarios) {
  const Group group(world());
  for (const auto& scenario : scenarios) {
    INFO(scenario.name);
    CHECK_NOTHROW(scenario.run(group));
  }
}

}  // namespace fast::testing
