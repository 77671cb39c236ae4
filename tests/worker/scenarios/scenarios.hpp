// What a Worker must do on any group: run on threads by worker_test.cpp and codecs_test.cpp, on
// ranks by worker_mpi_test.cpp and codecs_mpi_test.cpp. Each throws std::runtime_error when
// something is wrong.
#pragma once

#include <fast/exchange/group.hpp>

#include <vector>

namespace fast::testing {

using Scenario = void (*)(const Group&);
struct NamedScenario {
  const char* name;
  Scenario run;
};
/// All but those of codecs.
const std::vector<NamedScenario>& scenarios();
const std::vector<NamedScenario>& scenarios_of_codecs();

}  // namespace fast::testing
