// Combinations that the library refuses: with one message, and at once.
#pragma once

#include <string>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

struct Refusal {
  Plan plan;
  std::string text;  ///< of the message
};

std::vector<Refusal> refusals();

}  // namespace chaos
