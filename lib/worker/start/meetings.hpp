// How fast values spread over a schedule of pairs.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/topology/topology.hpp>

namespace fast::worker {

/// Of larger runs, meetings are not computed.
inline constexpr int most_workers_that_meet = 1024;

/// Every worker comes to the same result alone. O(N³) once. Endless schedules are looked at in 16 N
/// rounds. Both numbers are 0 where not all workers can reach each other.
algorithm::Meetings meetings_of(const Schedule& schedule);

}  // namespace fast::worker
