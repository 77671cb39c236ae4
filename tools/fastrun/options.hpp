// The command line of fastrun.
#pragma once

#include <string>

#include "cli/command.hpp"
#include "fastrun.hpp"

namespace fastrun {

/// Adds the options. What follows them is the program: CLI::App::remaining(). No option takes it
/// for a value of its own.
void describe(tools::Command& command, Options& options, bool& doctor);

/// Turns "-np", as other launchers have it, into "-n": of the options of fastrun alone, not of the
/// program that follows them.
void take_np_for_n(const tools::Command& command, int argc, char** argv);

/// What is wrong with options that are good each by itself; empty: nothing.
std::string contradiction(const Options& options);

}  // namespace fastrun
