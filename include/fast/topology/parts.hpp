// Into what parts a topology falls without some of its workers.
#pragma once

#include <fast/topology/schedule.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fast {

/// The number of rounds that have all edges: the period, or 64 of a schedule that never repeats.
std::int64_t rounds_with_all_edges(const Schedule& schedule);

/// The workers that are not among `dead`, in parts that edges of some round connect, whichever way
/// they point (see rounds_with_all_edges). Each part is sorted; the largest comes first, of equal
/// ones that of the lowest worker.
std::vector<std::vector<int>> living_parts(const Schedule& schedule, const std::vector<int>& dead);

/// "{0, 1, 5} and {3}": of parts as above.
std::string describe_parts(const std::vector<std::vector<int>>& parts);

}  // namespace fast
