// Metrics of a run as JSON lines, one file for each worker.
#pragma once

#include <fast/core/deadline.hpp>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fast::train {

/// Numbers with names: an object within a line.
using Figures = std::vector<std::pair<std::string, double>>;

/// One name and value of a line: a boolean, an integer, a number, a text, a list of integers or an
/// object of numbers. A number that is not known is NaN.
struct Metric {
  Metric(std::string_view name, bool value) : name(name), value(value) {}
  template <std::integral T>
  Metric(std::string_view name, T value) : name(name), value(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Metric(std::string_view name, T value) : name(name), value(static_cast<double>(value)) {}
  Metric(std::string_view name, const char* value) : name(name), value(std::string(value)) {}
  Metric(std::string_view name, std::string value) : name(name), value(std::move(value)) {}
  Metric(std::string_view name, std::vector<int> value) : name(name), value(std::move(value)) {}
  Metric(std::string_view name, Figures value) : name(name), value(std::move(value)) {}

  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<int>, Figures> value;
};

/// `metrics.write("epoch", {{"loss", 0.31}})` adds the line
/// {"kind":"epoch","time":1763800000.25,"seconds":12.5,"rank":0,"loss":0.31}. "time" is in seconds
/// since 1970, "seconds" counts from begin(). Every line is written to the system at once, so that
/// it outlives a run that dies. NaN and infinities are written as null. Not thread-safe.
class MetricsWriter {
 public:
  /// Creates `directory`/metrics if needed and opens <rank>.jsonl in it. Lines are appended; a last
  /// line that was cut off is ended first. Throws Error(resource) when the file cannot be opened.
  MetricsWriter(const std::filesystem::path& directory, int rank);

  /// When training began. The constructor takes the present.
  void begin(Clock::time_point at = Clock::now()) { began_ = at; }

  /// Throws Error(resource) when the line cannot be written (disk full). A later line may succeed.
  void write(std::string_view kind, std::span<const Metric> metrics);
  void write(std::string_view kind, std::initializer_list<Metric> metrics) {
    write(kind, std::span<const Metric>(metrics.begin(), metrics.size()));
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  void open();

  std::filesystem::path path_;
  int rank_;
  std::ofstream out_;
  Clock::time_point began_ = Clock::now();
};

/// Writes `directory`/metrics.jsonl: the lines of all files of `directory`/metrics, by "time". The
/// order of each worker's lines stays. Times are those of worker 0's clock where a "start" line has
/// "clock_offset". Lines that were cut off are left out. No process sees a part of the file.
/// Returns the files that could not be read, whose lines are missing. Throws Error(resource) when
/// the file cannot be written.
std::vector<std::filesystem::path> merge_metrics(const std::filesystem::path& directory);

}  // namespace fast::train
