// Reads traces that Trace has written.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "observe/trace_packets.hpp"

namespace fast::observe {

/// What is in one or several files of traces.
struct TraceContent {
  std::vector<Track> tracks;       ///< each once
  std::vector<TrackEvent> events;  ///< by time; of equal times, in the order written
  int cut = 0;                     ///< files whose last packet was cut off: their writer was killed
};

/// All files trace-*.pftrace in `directory`. Throws Error(argument) when there is none, and
/// Error(mismatch) for a file that is no trace.
TraceContent read_traces(const std::filesystem::path& directory);

/// Adds what is in the bytes of one file. False when the last packet is not whole.
bool read_trace(std::string_view bytes, TraceContent& content);

// Timelines of hosts whose clocks differ.

/// Moves all times to worker 0's clock, by the offsets that each worker has told
/// (clock_offset_name): by the line through the first and the last one, and by the nearer one
/// before and after them. Takes these offsets out, and sorts the events anew.
void align(TraceContent& content);

}  // namespace fast::observe
