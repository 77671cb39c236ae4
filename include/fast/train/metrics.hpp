// Metrics of a run as JSON lines, one file for each worker.
#pragma once

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

namespace fast::train {

/// One name and value of a line: a boolean, an integer, a number or a text.
struct Metric {
  Metric(std::string_view name, bool value) : name(name), value(value) {}
  template <std::integral T>
  Metric(std::string_view name, T value) : name(name), value(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Metric(std::string_view name, T value) : name(name), value(static_cast<double>(value)) {}
  Metric(std::string_view name, const char* value) : name(name), value(std::string(value)) {}
  Metric(std::string_view name, std::string value) : name(name), value(std::move(value)) {}

  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

/// `metrics.write({{"epoch", 1}, {"loss", 0.31}})` adds the line {"epoch":1,"loss":0.31}. Every
/// line is written to the system at once, so that it outlives a run that dies.
/// NaN and infinities are written as null.
class MetricsWriter {
 public:
  /// Creates `directory` if needed and opens metrics-<rank>.jsonl in it. Lines are appended; a last
  /// line that was cut off is ended first. Throws Error(resource) when the file cannot be opened.
  MetricsWriter(const std::filesystem::path& directory, int rank);

  /// Throws Error(resource) when the line cannot be written (disk full). A later line may succeed.
  void write(std::span<const Metric> metrics);
  void write(std::initializer_list<Metric> metrics) {
    write(std::span<const Metric>(metrics.begin(), metrics.size()));
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  void open();

  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace fast::train
