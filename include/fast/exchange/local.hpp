// Workers as threads of one process: quick starts, debuggers, thread sanitizers, tests. Needs no
// MPI.
#pragma once

#include <fast/exchange/group.hpp>

#include <functional>
#include <vector>

namespace fast::local {

/// The handles of a group, one per worker.
std::vector<Group> make_groups(int workers);

/// Runs fn(group) on `workers` threads and joins them. If any throws, waits until the others have
/// finished or failed, then throws the first error that is not Error(peer_failed). Error(resource)
/// if the system makes no more threads.
void run(int workers, const std::function<void(Group)>& fn);

}  // namespace fast::local
