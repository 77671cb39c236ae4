// Reads the directory of a run.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fast_report/run.hpp"

namespace fast_report {

// The metrics of a run: metrics/RANK.jsonl, or metrics.jsonl, which has the lines of all ranks.

/// The workers of a run directory. Of a worker with a file of its own, that file is read;
/// metrics.jsonl gives the others. Appends to `faults` what could not be read. Throws fast::Error
/// (data) when the directory cannot be read or has no metrics.
std::map<int, Worker> read_metrics(const std::filesystem::path& directory,
                                   std::vector<std::string>& faults);

/// Adds a line to the worker's newest part; a line of kind "start" begins a part. Lines of unknown
/// kinds count for nothing.
void take_line(Worker& worker, nlohmann::json line);

/// Throws fast::Error (data) when the directory is that of no run. Anything less is a sentence in
/// Run::faults.
Run read_run(const std::filesystem::path& directory);

/// The newest configuration file of a run, as options and the comments above them. Appends to
/// run.faults when there is none or it cannot be read.
void read_options(Run& run);

/// "0-2, 5"
std::string as_ranges(const std::vector<int>& ascending);

}  // namespace fast_report
