// Where the time of a run went, by worker.
#pragma once

#include <map>

#include "fast_report/run.hpp"

namespace fast_report {

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

/// Seconds that a worker trained, over all parts.
double seconds_of(const Worker& worker);

}  // namespace fast_report
