// Waiting over time, the phases of a step, and events: rows for charts.
#pragma once

#include <nlohmann/json.hpp>

#include <map>

#include "fast_report/run.hpp"

namespace fast_report {

// One time axis for all workers and parts of a run.

/// Sets Part::number and Part::offset_s. Parts of different workers belong together when they
/// resumed from the same round, in the order of their starts. A part follows the one before without
/// the time between them. Within a part, workers are aligned by their clocks once, at the start,
/// less the offset that the run has measured. Without an offset, a worker whose clock differs from
/// the others' by more than the part lasted is not aligned.
void align(std::map<int, Worker>& workers);

/// Number of parts, after align().
int parts_of(const std::map<int, Worker>& workers);

// Where the time of a run went, by worker.

/// Of all parts. Of a part, epochs or intervals are added up: what covers more time.
TimeSpent total(const Worker& worker);
/// By rank.
std::map<int, TimeSpent> totals(const Run& run);
/// All workers together.
TimeSpent sum(const std::map<int, TimeSpent>& totals);
/// How long others waited for each worker.
std::map<int, double> waited_for(const std::map<int, TimeSpent>& totals);

/// "step", "publish", "wait", "mix", "rest" as far as present, then other names.
std::vector<std::string> phases_in_order(const TimeSpent& all);

/// Rounds that a worker has made: the largest "step" of its lines.
std::int64_t rounds_of(const Worker& worker);

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
