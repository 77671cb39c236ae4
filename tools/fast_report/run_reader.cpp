#include "fast_report/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <sstream>

#include "core/toml.hpp"
#include "fast_report/metrics_files.hpp"
#include "fast_report/timeline.hpp"

namespace fast_report {

namespace fs = std::filesystem;

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
