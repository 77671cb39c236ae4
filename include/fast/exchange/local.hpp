// Workers as threads of one process: quick starts, debuggers, thread sanitizers, tests. Needs no
// MPI.
#pragma once

#include <fast/exchange/group.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace fast::local {

/// A group's handles, one a worker.
std::vector<Group> make_groups(int workers);

/// Runs fn(group) on `workers` threads and joins them. When any throws, the others are let finish
/// or fail, and the first error that is not Error(peer_failed) is thrown.
void run(int workers, const std::function<void(Group)>& fn);

}  // namespace fast::local
