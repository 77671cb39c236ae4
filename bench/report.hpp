// What every benchmark shares: interleaved timings with their spread, a table on the terminal and
// the same rows as JSON. A benchmark of ranks keeps one Report a rank and finishes that of rank 0.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fast::bench {

/// Of one call; low and high are the quantiles 10 % and 90 %.
struct Timing {
  double median_ms = 0, low_ms = 0, high_ms = 0;
};

/// Sorts `samples_ms`, of which there is at least one.
Timing timing_of(std::vector<double> samples_ms);

struct Method {
  std::string name;
  std::function<void()> run;        ///< what is timed
  int calls = 1;                    ///< of run in one sample; a short one wants many
  std::function<void()> prepare{};  ///< before each sample, not timed
};

/// How many calls of `run` take at least `sample_ms`. Not for collective calls: ranks would differ.
int calls_for(const std::function<void()>& run, double sample_ms = 1);

using Row = nlohmann::ordered_json;  ///< an object; its keys are the table's columns

class Report {
 public:
  explicit Report(std::string program, int repeats = 15);

  /// --json FILE and --repeats N.
  void add_options(CLI::App& app);
  int repeats() const { return repeats_; }

  /// Once all methods untimed, then `repeats` times each in turn, so that what disturbs one
  /// disturbs all alike. In the order of `methods`.
  std::vector<Timing> measure_interleaved(const std::vector<Method>& methods) const;

  /// Appends a row.
  void add(Row row);
  /// Appends `row` with "method" in front and "median_ms", "low_ms", "high_ms" behind.
  void add(const std::string& method, const Row& row, const Timing& timing);
  const std::vector<Row>& rows() const { return rows_; }

  /// Writes the rows so far to the file of --json, for runs that may be stopped before they finish.
  /// False when that fails.
  bool save() const;
  /// Prints the table, writes the JSON where asked for; the exit status of main.
  int finish() const;

 private:
  std::string program_;
  int repeats_;
  std::string json_;
  std::vector<Row> rows_;
};

}  // namespace fast::bench
