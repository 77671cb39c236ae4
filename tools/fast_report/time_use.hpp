// Waiting over time, the phases of a step, and events: rows for charts.
#pragma once

#include <nlohmann/json.hpp>

#include "fast_report/run.hpp"

namespace fast_report {

/// Rows {worker, from, to, share, waited_s, peer}: which share (0..1) of the time between two lines
/// a worker waited, and for whom the longest. Intervals where a run has some, else epochs. Lines of
/// long runs are joined, so that a worker has at most `most_cells`.
nlohmann::json waiting_over_time(const Run& run);
inline constexpr std::size_t most_cells = 200;

/// Rows {worker, phase, order, share, seconds}. The shares of a worker sum to 1.
nlohmann::json anatomy(const Run& run);

/// Rows {worker, seconds, event, count, seen_by, step, text}; `worker` is the one that the event
/// concerns. Equal events of a worker within a second, or within 1/150 of a long run, are one row,
/// at the time of the first.
nlohmann::json events_over_time(const Run& run);

/// The end of the time axis, in seconds.
double last_second(const Run& run);

}  // namespace fast_report
