// What the subcommands list, show, compare and check do. Each throws fast::Error.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace fast_topology {

// The options of fast-topology show, compare and check.

/// The number of workers where neither an option nor the topology says it.
inline constexpr int usual_workers = 16;

struct Options {
  std::vector<std::string> names;  ///< topologies or files
  int workers = 0;                 ///< 0: what the topology says, or usual_workers
  double parameters = 0;           ///< of the model; 0: not given
  double momentum = 0.9;
  std::string weights = "automatic";
  bool lazy = false, matrix = false, json = false;
  std::string dot, svg, save;  ///< files; empty: none
  int rounds = 60;
  std::string algorithm;
};

void add_show_options(tools::Command& command, Options& options);
void add_compare_options(tools::Command& command, Options& options);
void add_check_options(tools::Command& command, Options& options);

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
