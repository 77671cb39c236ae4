// A run in a few figures, and in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fast_report/run.hpp"

namespace fast_report {

/// What is not known is absent.
struct Summary {
  std::int64_t epochs = 0, rounds = 0;  ///< of the worker that made the most
  double seconds = 0;                   ///< on the report's time axis
  std::optional<double> loss;           ///< training, mean of the workers, last epoch
  /// 0..1, last known. Of the validation only where it is not the test.
  std::optional<double> validation_accuracy, test_accuracy;
  std::optional<double> samples_per_second;  ///< of all workers, last epoch
  double wait_share = 0;                     ///< of the time of all workers, 0..1
  int finished = 0;
  std::vector<int> lost;  ///< in state lost or suspected
  std::vector<int> failed, left;
};
Summary summarize(const Run& run);

/// A name and a text.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// What the run was, for a table.
Rows facts(const Run& run);

/// What the run shows, one sentence each, the result first.
std::vector<std::string> findings(const Run& run);

/// A table with a line for each run; the first line has the headings.
std::vector<std::vector<std::string>> comparison(const std::vector<Run>& runs,
                                                 const std::vector<std::string>& names);

/// The options that are not the same in all runs: a heading line, then name and a value for each.
std::vector<std::vector<std::string>> differences(const std::vector<Run>& runs,
                                                  const std::vector<std::string>& names);

}  // namespace fast_report
