// What an all-reduce says when a worker has died.
#pragma once

#include <functional>
#include <vector>

namespace fast::exchange {

/// Throws if `dead` gives workers. A death holds all workers alike, so one of them reports it by
/// Error(deadline): the lowest that lives. The others throw Error(peer_failed), later: when they
/// leave, the process manager ends all. `dead` is asked again then: a death that was not known at
/// first may have been that of the worker that had to report.
void fail_without(const std::function<std::vector<int>()>& dead, int rank);

}  // namespace fast::exchange
