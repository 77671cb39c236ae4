// Catch2's session: most of Catch2, compiled once for the main functions of all test programs.
#pragma once

namespace fast::testing {

/// Runs the test cases that the command line names; the program's exit status. `silent`: prints
/// nothing but errors of the command line.
int run_tests(int argc, char** argv, bool silent = false);

}  // namespace fast::testing
