#include "fast_report/run.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fast/core/error.hpp>
#include <fstream>
#include <sstream>

#include "core/message.hpp"
#include "core/text.hpp"
#include "core/toml.hpp"
#include "fast_report/time_use.hpp"

namespace fast_report {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

void take(const std::string& line, bool ended, JsonLines& into) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  json object = json::parse(line, nullptr, false);
  if (object.is_object()) {
    into.objects.push_back(std::move(object));
  } else if (ended) {
    ++into.unreadable;
  } else {
    into.cut = true;
  }
}

}  // namespace

JsonLines read_json_lines(const std::filesystem::path& path) {
  const std::string reason = fast::why_unreadable_file(path);
  fast::require(reason.empty(), fast::ErrorKind::data, "{}: {}", path.string(), reason);
  std::ifstream in(path, std::ios::binary);
  JsonLines lines;
  std::string line;
  while (std::getline(in, line)) take(line, !in.eof(), lines);
  return lines;
}

std::optional<int> as_rank(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const double rank = value.get<double>();
  return rank >= 0 && rank < static_cast<double>(most_ranks) ? std::optional(static_cast<int>(rank))
                                                             : std::nullopt;
}

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

namespace {

/// "config.toml" is the first one, "config-2.toml" that of the first time that a run was resumed.
int configuration_number(const std::string& name) {
  if (name == "config.toml") return 1;
  int number = 0;
  if (!name.starts_with("config-") || !name.ends_with(".toml")) return 0;
  std::from_chars(name.data() + 7, name.data() + name.size(), number);
  return number;
}

fs::path newest_configuration(const fs::path& directory) {
  fs::path newest;
  int most = 0;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(directory, problem)) {
    const int number = configuration_number(entry.path().filename().string());
    if (number > most) newest = entry.path();
    most = std::max(most, number);
  }
  return newest;
}

std::string value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  std::string list;
  if (const auto* entries = node.as_array()) {
    for (const toml::node& entry : *entries) list += (list.empty() ? "" : ", ") + value_of(entry);
  }
  return list;
}

void add_options(const toml::table& table, const std::string& prefix, std::vector<Option>& into) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      add_options(*inner, name + ".", into);
    } else {
      into.push_back({name, value_of(node)});
    }
  }
}

/// The comments that a text begins with, as far as they are about this run.
std::vector<std::string> remarks_of(const std::string& text) {
  std::vector<std::string> remarks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("#");) {
    const auto from = line.find_first_not_of("# ");
    if (from == std::string::npos) continue;
    if (line.substr(from).starts_with("Options of")) break;
    remarks.push_back(line.substr(from));
  }
  return remarks;
}

/// As many as the newest part has come to: workers that join say how many there are then.
int size_of(const Run& run) {
  std::int64_t most = 0;
  for (const auto& [rank, worker] : run.workers) {
    const Part& last = worker.parts.back();
    if (last.number + 1 == parts_of(run.workers))
      most = std::max(most, last.start.integer("workers").value_or(0));
  }
  const bool is_told = most > 0 && most <= most_ranks;
  return is_told ? static_cast<int>(most) : run.workers.rbegin()->first + 1;
}

std::string name_of(const fs::path& directory) {
  const fs::path whole = fs::absolute(directory).lexically_normal();
  const std::string name = whole.filename().string();
  return name.empty() ? whole.parent_path().filename().string() : name;
}

}  // namespace

void read_options(Run& run) {
  const fs::path path = newest_configuration(run.directory);
  if (path.empty()) {
    run.faults.emplace_back("There is no config.toml; the options are unknown.");
    return;
  }
  try {
    const std::string text = fast::text_of_file(path.string(), "config.toml", "");
    add_options(fast::toml_table(text, {path.string(), fast::ErrorKind::data, "config.toml"}), "",
                run.options);
    run.remarks = remarks_of(text);
  } catch (const fast::Error& error) {
    run.faults.push_back(fmt::format("The options cannot be read: {}", error.what()));
  }
}

std::string as_ranges(const std::vector<int>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ascending[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : "-", ascending[last]);
    i = last + 1;
  }
  return text;
}

Run read_run(const fs::path& directory) {
  Run run;
  run.directory = directory;
  run.name = name_of(directory);
  run.workers = read_metrics(directory, run.faults);
  align(run.workers);
  run.size = size_of(run);
  for (int rank = 0; rank < run.size; ++rank) {
    if (run.workers.count(rank) == 0) run.missing.push_back(rank);
  }
  if (!run.missing.empty()) {
    run.faults.push_back(fmt::format("There are no metrics of {} of {} workers: {}.",
                                     run.missing.size(), run.size, as_ranges(run.missing)));
  }
  read_options(run);
  return run;
}

}  // namespace fast_report
