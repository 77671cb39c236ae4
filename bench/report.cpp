#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace fast::bench {
namespace {

double time_ms(const std::function<void()>& run, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) run();
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / calls;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(share * last))];
}

std::string text_of(const Row& row, const std::string& column) {
  if (!row.contains(column)) return "-";
  const auto& value = row[column];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

std::vector<std::string> columns_of(const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  for (const Row& row : rows) {
    for (const auto& [key, value] : row.items()) {
      if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
    }
  }
  return columns;
}

void print(const std::vector<Row>& rows) {
  const auto columns = columns_of(rows);
  std::vector<std::string> lines(rows.size() + 1);
  for (const std::string& column : columns) {
    std::size_t width = column.size();
    bool numbers = true;
    for (const Row& row : rows) {
      width = std::max(width, text_of(row, column).size());
      numbers = numbers && (!row.contains(column) || row[column].is_number());
    }
    const auto cell = [&](const std::string& text) {
      return numbers ? fmt::format("{:>{}}  ", text, width) : fmt::format("{:<{}}  ", text, width);
    };
    lines[0] += cell(column);
    for (std::size_t r = 0; r < rows.size(); ++r) lines[r + 1] += cell(text_of(rows[r], column));
  }
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

}  // namespace

Timing timing_of(std::vector<double> samples_ms) {
  std::sort(samples_ms.begin(), samples_ms.end());
  return {quantile(samples_ms, 0.5), quantile(samples_ms, 0.1), quantile(samples_ms, 0.9)};
}

int calls_for(const std::function<void()>& run, double sample_ms) {
  int calls = 1;
  while (time_ms(run, calls) * calls < sample_ms && calls < (1 << 20)) calls *= 2;
  return calls;
}

Report::Report(std::string program, int repeats)
    : program_(std::move(program)), repeats_(repeats) {}

void Report::add_options(CLI::App& app) {
  app.add_option("--json", json_, "write the table's rows to this file, as a list of objects");
  app.add_option("--repeats", repeats_, "samples of each method, of which the median is given")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

std::vector<Timing> Report::measure_interleaved(const std::vector<Method>& methods) const {
  std::vector<std::vector<double>> samples(methods.size());
  for (int repeat = -1; repeat < repeats_; ++repeat) {
    for (std::size_t m = 0; m < methods.size(); ++m) {
      if (methods[m].prepare) methods[m].prepare();
      const double sample_ms = time_ms(methods[m].run, methods[m].calls);
      if (repeat >= 0) samples[m].push_back(sample_ms);
    }
  }
  std::vector<Timing> timings;
  for (auto& of_method : samples) timings.push_back(timing_of(std::move(of_method)));
  return timings;
}

void Report::add(Row row) { rows_.push_back(std::move(row)); }

void Report::add(const std::string& method, const Row& row, const Timing& timing) {
  Row whole{{"method", method}};
  whole.update(row);
  whole.update(
      {{"median_ms", timing.median_ms}, {"low_ms", timing.low_ms}, {"high_ms", timing.high_ms}});
  add(std::move(whole));
}

bool Report::save() const {
  if (json_.empty()) return true;
  const std::string begun = json_ + ".part";
  std::ofstream file(begun);
  file << Row(rows_).dump(2) << '\n' << std::flush;
  return file.good() && std::rename(begun.c_str(), json_.c_str()) == 0;
}

int Report::finish() const {
  print(rows_);
  if (save()) return 0;
  fmt::print(stderr, "{}: cannot write {}; choose another file\n", program_, json_);
  return 1;
}

}  // namespace fast::bench
