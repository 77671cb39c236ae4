// What fast-sim prints.
#pragma once

#include "fast_sim/network.hpp"

namespace fast_sim {

void print_result(const Result& result, const fast::simulation::Workload& load,
                  const Options& options);

}  // namespace fast_sim
