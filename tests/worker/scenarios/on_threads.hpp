// Runs scenarios on threads, on several worker counts.
#pragma once

#include <cstdlib>
#include <fast/exchange/local.hpp>

#include "support/catch.hpp"
#include "worker/scenarios/scenarios.hpp"

namespace fast::testing {

/// Sanitizers take up to ten times as long: FAST_FEW_WORKER_COUNTS leaves one count, for them.
inline std::vector<int> worker_counts() {
  if (std::getenv("FAST_FEW_WORKER_COUNTS") != nullptr) return {3};
  return {1, 2, 3, 4, 6};
}

inline void hold_on_threads(const std::vector<NamedScenario>& scenarios) {
  for (const int workers : worker_counts()) {
    for (const auto& scenario : scenarios) {
      INFO(scenario.name << " on " << workers << " workers");
      CHECK_NOTHROW(local::run(workers, scenario.run));
    }
  }
}

}  // namespace fast::testing
