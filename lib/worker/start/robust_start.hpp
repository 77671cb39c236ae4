// Whether robust averaging fits a run.
#pragma once

#include <fast/worker/worker.hpp>
#include <string>

namespace fast::worker {

/// Throws Error(argument) where robust averaging of these options would not be sound, with the
/// reason.
void check_for_robust(const WorkerOptions& options);

/// What the user should know of robust averaging on that schedule, in one line; mostly empty.
/// Throws Error(topology) where no worker ever reads two neighbors in a round.
std::string robust_notice(const Schedule& schedule, Robust robust);

}  // namespace fast::worker
