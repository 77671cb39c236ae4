#include "fast_report/metrics_files.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>

#include "core/text.hpp"

namespace fast_report {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::optional<double> positive(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<int> rank_in(const std::string& digits) {
  int rank = 0;
  const bool good = fast::reads(digits, rank) && rank >= 0 && rank < most_ranks;
  return good ? std::optional(rank) : std::nullopt;
}

const json& member(const json& object, const char* name) {
  static const json none = json::object();
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : none;
}

TimeSpent time_spent(const json& line) {
  TimeSpent spent;
  for (const auto& [phase, value] : member(line, "phases").items()) {
    if (const auto seconds = positive(value)) spent.phases_s[phase] = *seconds;
  }
  for (const auto& [name, value] : member(line, "waits").items()) {
    const auto peer = rank_in(name);
    const auto seconds = positive(value);
    if (peer && seconds) spent.waits_s[*peer] = *seconds;
  }
  return spent;
}

Event event_of(const Fields& fields, double seconds) {
  return {seconds, fields.text("event").value_or("event"), fields.rank("worker"),
          fields.integer("step"), fields.text("text").value_or("")};
}

Part& newest_part(Worker& worker, bool starts) {
  if (starts || worker.parts.empty()) worker.parts.emplace_back();
  return worker.parts.back();
}

}  // namespace

void take_line(Worker& worker, json line) {
  TimeSpent spent = time_spent(line);
  Fields fields(std::move(line));
  const std::string kind = fields.text("kind").value_or("");
  const double seconds = std::max(0.0, fields.number("seconds").value_or(0));
  Part& part = newest_part(worker, kind == "start");
  const auto time = fields.number("time");
  if (part.began_at == 0 && time) part.began_at = *time - seconds;
  part.last_s = std::max(part.last_s, seconds);
  if (kind == "start") part.start = fields;
  if (kind == "end") part.end = fields;
  if (kind == "event") part.events.push_back(event_of(fields, seconds));
  if (kind == "epoch")
    part.epochs.push_back({seconds, std::move(fields), std::move(spent)});
  else if (kind == "interval")
    part.intervals.push_back({seconds, std::move(fields), spent});
}

namespace {

void report_faults(const std::string& name, const JsonLines& lines,
                   std::vector<std::string>& faults) {
  if (lines.objects.empty() && !lines.cut && lines.unreadable == 0) {
    faults.push_back(fmt::format("{} is empty.", name));
  }
  if (lines.cut) {
    faults.push_back(fmt::format("The last line of {} is cut; it is left out.", name));
  }
  if (lines.unreadable > 0) {
    faults.push_back(fmt::format("{} lines of {} are no JSON objects; they are left out.",
                                 lines.unreadable, name));
  }
}

/// By rank.
std::map<int, fs::path> files_in(const fs::path& folder) {
  std::map<int, fs::path> files;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    const auto rank = rank_in(entry.path().stem().string());
    if (rank && entry.path().extension() == ".jsonl") files.emplace(*rank, entry.path());
  }
  return files;
}

void read_own(int rank, const fs::path& path, std::map<int, Worker>& workers,
              std::vector<std::string>& faults) {
  const std::string name = "metrics/" + path.filename().string();
  try {
    JsonLines lines = read_json_lines(path);
    report_faults(name, lines, faults);
    for (json& line : lines.objects) {
      Worker& worker = workers[rank];
      worker.rank = rank;
      take_line(worker, std::move(line));
    }
  } catch (const fast::Error& error) {
    faults.push_back(fmt::format("{} cannot be read: {}.", name, error.what()));
  }
}

/// The lines of workers that have no file of their own.
void read_merged(const fs::path& path, std::map<int, Worker>& workers,
                 std::vector<std::string>& faults) {
  JsonLines lines = read_json_lines(path);
  report_faults(path.filename().string(), lines, faults);
  std::map<int, Worker> others;
  for (json& line : lines.objects) {
    const auto found = line.find("rank");
    const auto rank = found == line.end() ? std::nullopt : as_rank(*found);
    if (!rank || workers.count(*rank) > 0) continue;
    others[*rank].rank = *rank;
    take_line(others[*rank], std::move(line));
  }
  workers.merge(others);
}

}  // namespace

std::map<int, Worker> read_metrics(const fs::path& directory, std::vector<std::string>& faults) {
  const std::string reason = fast::why_unreadable_directory(directory);
  fast::require(reason.empty(), fast::ErrorKind::data,
                "{}: {}; give the directory of a run (fast-train --out)", directory.string(),
                reason);
  std::error_code ignored;
  std::map<int, Worker> workers;
  const std::map<int, fs::path> files = files_in(directory / "metrics");
  const bool merged = fs::is_regular_file(directory / "metrics.jsonl", ignored);
  fast::require(merged || !files.empty(), fast::ErrorKind::data,
                "{}: it has no metrics/*.jsonl; give the directory of a run (fast-train --out)",
                directory.string());
  for (const auto& [rank, path] : files) read_own(rank, path, workers, faults);
  if (merged) read_merged(directory / "metrics.jsonl", workers, faults);
  fast::require(!workers.empty(), fast::ErrorKind::data,
                "{}: its metrics have no line that can be read; nothing to report",
                directory.string());
  return workers;
}

}  // namespace fast_report
