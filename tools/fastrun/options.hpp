// The command line of fastrun.
#pragma once

#include "cli/command.hpp"
#include "fastrun.hpp"

namespace fastrun {

/// Adds the options. What follows them is the program: CLI::App::remaining(). No option takes it
/// for a value of its own.
void describe(tools::Command& command, Options& options, bool& doctor);

}  // namespace fastrun
