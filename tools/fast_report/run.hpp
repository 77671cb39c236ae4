// What a training run left behind, as the report needs it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fast_report/json_lines.hpp"

namespace fast_report {

/// Where a worker's time went.
struct TimeSpent {
  std::map<std::string, double> phases_s;
  std::map<int, double> waits_s;  ///< by the worker that was waited for; within the phases

  void add(const TimeSpent& other);
  double seconds() const;  ///< of all phases
  double phase(const std::string& name) const;
  double wait_share() const;  ///< 0..1; 0 when no time was measured
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
  const Fields& start() const;
  std::optional<std::string> option(const std::string& name) const;
};

}  // namespace fast_report
