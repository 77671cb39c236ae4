// What can be done with the traces of a run, afterwards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observe/trace_packets.hpp"

namespace fast::observe {

/// All files trace-*.pftrace in `directory`. Throws Error(data) when there is none, and
/// Error(mismatch) for a file that is no trace.
TraceContent read_traces(const std::filesystem::path& directory);

/// Moves all times to worker 0's clock, by the offsets that each worker has told
/// (clock_offset_name): by the line from each one to the next, and by the nearer one before and
/// after them. Takes these offsets out, and sorts the events anew.
void align(TraceContent& content);

/// What is in a merged trace.
struct MergedTrace {
  int workers = 0;
  std::size_t events = 0;
  std::size_t flows = 0;  ///< reads whose publication is known
  int cut = 0;            ///< files whose last packet was cut off: their worker was killed
  /// Sites whose times are those of their own clocks: no other site has measured them. Arrows to
  /// and from them may be missing, as an arrow leads forward in time.
  std::vector<std::string> apart{};
};

/// Joins the traces of all workers to one file, in which an arrow leads from each publication to
/// each read of it. Of several directories, each is that of a site; times are moved to the clock of
/// the first one, by the clocks of others that sites have measured while they read from them.
/// Throws as read_traces(), Error(argument) for no directory, and for several of which one is of no
/// site or two are of one, Error(resource) when `to` cannot be written.
MergedTrace merge_traces(const std::vector<std::filesystem::path>& directories,
                         const std::filesystem::path& to);

/// The shares of a run's time.
struct TraceSummary {
  struct Worker {
    std::int64_t rounds = 0;
    double seconds = 0;                      ///< of its rounds
    std::map<std::string, double> phases_s;  ///< by name of the phase
    std::map<int, double> waits_s;           ///< by the worker that was waited for
  };
  std::map<int, Worker> workers;
  /// What the slowest 1 % of all rounds waited for in the end: "worker 2: step" and how many.
  std::vector<std::pair<std::string, int>> causes;  ///< most frequent first
  int slowest_rounds = 0;
  /// Suspects, returns and the like: seconds since the first event, and what it was.
  std::vector<std::pair<double, std::string>> events;
};

/// Throws as read_traces().
TraceSummary summarize_traces(const std::filesystem::path& directory);

/// Returns the summary as a text for people.
std::string to_text(const TraceSummary& summary);

}  // namespace fast::observe
