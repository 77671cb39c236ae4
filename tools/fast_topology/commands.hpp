// What the subcommands list, show, compare and check do. Each throws fast::Error.
#pragma once

#include <string>

#include "fast_topology/options.hpp"

namespace fast_topology {

/// All names.
void list();
/// Figures and pictures of one topology.
void show(const Options& options);
/// A table, best first.
void compare(const Options& options);
/// True for files that a run can learn with: read without an error, and connected over their
/// rounds. Prints what is wrong with each of the others.
bool check(const Options& options);

/// To the file, or to standard output for "-".
void write(const std::string& path, const std::string& text);

}  // namespace fast_topology
