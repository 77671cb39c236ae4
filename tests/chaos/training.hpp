// Runs of fast-train: full disks, SIGTERM while saving, and others beside them. Judged by exit
// status, messages, and by whether the checkpoints that exist can be resumed.
#pragma once

#include <string>

#include "chaos/run.hpp"

namespace chaos {

Verdict run_training(const Programs& programs, const Plan& plan, const std::string& directory,
                     std::string& log);

/// What is wrong with what a run has printed that ended well: it has one table and no error.
std::string of_output(const std::string& log);

/// One rank: tells its process, and becomes fast-train.
int become_training(char** argv, const Plan& plan, const std::string& directory);

/// Why no disk of a small size can be made here; empty: it can.
std::string why_no_small_disk();

}  // namespace chaos
