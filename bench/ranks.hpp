// What the benchmarks of several ranks share. All calls are collective.
#pragma once

#include <CLI/CLI.hpp>
#include <fast/exchange/group.hpp>
#include <string>
#include <vector>

namespace fast::bench {

/// Reads the command line on every rank; an error of one is that of all. False when only help was
/// asked for, which rank 0 has printed.
bool parse(const Group& group, CLI::App& app, int argc, char** argv);

/// --batch and --steps of what is measured block by block.
void add_block(CLI::App& app, std::size_t& batch, int& steps);

/// "inf" or a number of rounds.
std::int64_t staleness_of(const std::string& text);

/// Returns on every rank at the same time, which it gives: none starts early. The ranks of several
/// hosts, whose clocks differ, are refused.
Clock::time_point start_together(const Group& group);

/// Every rank's values, by rank; as many on each.
std::vector<std::vector<double>> gather(const Group& group, const std::vector<double>& values);

/// A step of compute that leaves the core to others.
void sleep_ms(double duration_ms);

}  // namespace fast::bench
