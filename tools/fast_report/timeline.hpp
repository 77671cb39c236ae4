// One time axis for all workers and parts of a run.
#pragma once

#include <map>

#include "fast_report/run.hpp"

namespace fast_report {

/// Sets Part::number and Part::offset_s. Parts of different workers belong together when they
/// resumed from the same round, in the order of their starts. A part follows the one before without
/// the time between them. Within a part, workers are aligned by their clocks once, at the start,
/// less the offset that the run has measured. Without an offset, a worker whose clock differs from
/// the others' by more than the part lasted is not aligned.
void align(std::map<int, Worker>& workers);

/// Number of parts, after align().
int parts_of(const std::map<int, Worker>& workers);

}  // namespace fast_report
