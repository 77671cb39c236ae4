// Timelines of hosts whose clocks differ.
#pragma once

#include "observe/trace_reader.hpp"

namespace fast::observe {

/// Moves all times to worker 0's clock, by the offsets that each worker has told
/// (clock_offset_name): by the line through the first and the last one, and by the nearer one
/// before and after them. Takes these offsets out, and sorts the events anew.
void align(TraceContent& content);

}  // namespace fast::observe
