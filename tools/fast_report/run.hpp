// What a training run left behind, as the report needs it, and how it is read.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fast_report {

/// Files of one JSON object a line, as a run writes them while it may die at any time.
struct JsonLines {
  std::vector<nlohmann::json> objects;
  int unreadable = 0;  ///< whole lines that are no JSON object
  bool cut = false;    ///< the last line ends within an object
};

/// Reads what can be read. Empty lines count for nothing. Throws fast::Error (data) when the file
/// cannot be opened.
JsonLines read_json_lines(const std::filesystem::path& path);

/// Ranks are 0 and above, and a run has no more than this.
inline constexpr std::int64_t most_ranks = 1'000'000;

std::optional<int> as_rank(const nlohmann::json& value);

/// The members of a JSON object, by type. A member of another type, null, and a number that is not
/// finite count as absent.
class Fields {
 public:
  Fields() : object_(nlohmann::json::object()) {}
  explicit Fields(nlohmann::json object) : object_(std::move(object)) {}

  std::optional<double> number(const std::string& name) const {
    const nlohmann::json* value = find(name);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    const double number = value->get<double>();
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }

  /// A number without a fraction that fits.
  std::optional<std::int64_t> integer(const std::string& name) const {
    const auto value = number(name);
    const bool whole = value && *value == std::floor(*value) && std::abs(*value) <= most_exact;
    return whole ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
  }

  std::optional<int> rank(const std::string& name) const {
    const nlohmann::json* value = find(name);
    return value == nullptr ? std::nullopt : as_rank(*value);
  }

  /// Of a text; of a number its digits.
  std::optional<std::string> text(const std::string& name) const {
    const nlohmann::json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->get<std::string>();
    if (value->is_number() || value->is_boolean()) return value->dump();
    return std::nullopt;
  }

  /// The ranks in a list. What is no rank is left out.
  std::vector<int> ranks(const std::string& name) const {
    std::vector<int> ranks;
    const nlohmann::json* list = find(name);
    if (list == nullptr || !list->is_array()) return ranks;
    for (const nlohmann::json& entry : *list) {
      if (const auto rank = as_rank(entry)) ranks.push_back(*rank);
    }
    return ranks;
  }

  bool has(const std::string& name) const { return find(name) != nullptr; }
  const nlohmann::json& object() const { return object_; }

 private:
  /// 2^53: beyond it, a double is no exact count.
  static constexpr double most_exact = 9007199254740992.0;

  const nlohmann::json* find(const std::string& name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  nlohmann::json object_;
};

/// Where a worker's time went.
struct TimeSpent {
  std::map<std::string, double> phases_s;
  std::map<int, double> waits_s;  ///< by the worker that was waited for; within the phases

  void add(const TimeSpent& other) {
    for (const auto& [phase, seconds] : other.phases_s) phases_s[phase] += seconds;
    for (const auto& [peer, seconds] : other.waits_s) waits_s[peer] += seconds;
  }

  /// Of all phases.
  double seconds() const {
    double sum = 0;
    for (const auto& [phase, seconds] : phases_s) sum += seconds;
    return sum;
  }

  double phase(const std::string& name) const {
    const auto found = phases_s.find(name);
    return found == phases_s.end() ? 0 : found->second;
  }

  /// 0..1; 0 when no time was measured.
  double wait_share() const {
    const double sum = seconds();
    return sum > 0 ? phase("wait") / sum : 0;
  }
};

/// What a worker measured in an epoch, or in an interval of some seconds.
struct Measurement {
  double seconds = 0;  ///< on the worker's clock, since its training began
  Fields fields;
  TimeSpent spent;
};

struct Event {
  double seconds = 0;
  std::string name;          ///< "suspected", "checkpoint" and others
  std::optional<int> about;  ///< the worker that it concerns, if that is another one
  std::optional<std::int64_t> step;
  std::string text;
};

/// What a worker did from one start of the program to its end. A run that was resumed has several.
struct Part {
  Fields start;               ///< empty when the line is missing
  std::optional<Fields> end;  ///< missing when the worker was killed, or still trains
  double began_at = 0;        ///< seconds since 1970; 0: unknown
  double last_s = 0;          ///< the latest `seconds` of all lines
  int number = 0;             ///< of the run's parts, the same for all workers
  double offset_s = 0;        ///< plus `seconds`: seconds on the report's time axis
  std::vector<Measurement> epochs, intervals;
  std::vector<Event> events;

  double at(double seconds) const { return offset_s + seconds; }
};

struct Worker {
  int rank = 0;
  std::vector<Part> parts;
};

/// An option of config.toml.
struct Option {
  std::string name, value;
};

struct Run {
  std::string name;
  std::filesystem::path directory;
  std::map<int, Worker> workers;     ///< those with at least one line
  std::vector<int> missing;          ///< ranks of which there is no line
  int size = 0;                      ///< workers of the newest part, with those that joined
  std::vector<Option> options;       ///< of the newest configuration file
  std::vector<std::string> remarks;  ///< the comments above them: version, host and the like
  std::vector<std::string> faults;   ///< what could not be read, one sentence each

  /// The first start line of the newest part; empty fields when there is none.
  const Fields& start() const {
    static const Fields none;
    const Fields* newest = &none;
    int number = -1;
    for (const auto& [rank, worker] : workers) {
      for (const Part& part : worker.parts) {
        if (part.number <= number || part.start.object().empty()) continue;
        newest = &part.start;
        number = part.number;
      }
    }
    return *newest;
  }

  std::optional<std::string> option(const std::string& name) const {
    const auto found = std::ranges::find(options, name, &Option::name);
    return found == options.end() ? std::nullopt : std::optional(found->value);
  }
};

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
