// One rank of a run.
#pragma once

#include <fast/worker/worker.hpp>

#include <string>

#include "chaos/plan.hpp"

namespace chaos {

fast::WorkerOptions options_of(const Plan& plan);

/// Leaves DIRECTORY/result-RANK. What happens to links is asked for by DIRECTORY/event-NUMBER.
int work(int argc, char** argv, const Plan& plan, const std::string& directory);

/// The program from here on with a wall clock that it reads from DIRECTORY/clock-RANK, if the plan
/// changes this rank's clock. Returns if it does not, or once it has done so.
void fake_clock(char** argv, const Plan& plan, const std::string& directory);
/// The library that fakes clocks; empty: it is not here.
std::string clock_library();
/// Sets that clock.
void set_clock(const std::string& directory, int rank, double offset_s);

}  // namespace chaos
