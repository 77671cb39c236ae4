// One rank of a run with spares.
#pragma once

#include <string>

#include "seats/plan.hpp"

namespace seats {

int work(int argc, char** argv, const Plan& plan, const std::string& directory);

}  // namespace seats
