// Reads the directory of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fast_report/run.hpp"

namespace fast_report {

/// Throws fast::Error (data) when the directory is that of no run. Anything less is a sentence in
/// Run::faults.
Run read_run(const std::filesystem::path& directory);

/// The newest configuration file of a run, as options and the comments above them. Appends to
/// run.faults when there is none or it cannot be read.
void read_options(Run& run);

/// "0-2, 5"
std::string as_ranges(const std::vector<int>& ascending);

}  // namespace fast_report
