// Round times by a max-plus recurrence, for up to 10⁵ workers. Component simulation.
#pragma once

#include <fast/simulation/workload.hpp>

namespace fast::simulation {

/// The recurrence t_i(r+1) = max(t_i(r) + step, arrival at i of what each source published for
/// round r - staleness or later). Messages of one source to one reader follow each other; other
/// messages do not slow each other unless `transfer` says so. At staleness 0, a worker that is
/// ahead waits until the readers of its three slots have read. Above it, a message has the newest
/// publication. O(edges·rounds) time. Memory: O(workers) at a bounded staleness, O(workers·rounds)
/// at none. Throws Error as check() does.
RoundFigures recur(const Workload& workload, const TransferTime& transfer);

}  // namespace fast::simulation
