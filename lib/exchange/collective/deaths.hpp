// What an all-reduce says when a worker has died.
#pragma once

#include <vector>

namespace fast::exchange {

/// Throws if `dead` is not empty. A death holds all workers alike, so one of them reports it by
/// Error(deadline): the lowest that lives. The others throw Error(peer_failed), later: when they
/// leave, the process manager ends all.
void fail_without(const std::vector<int>& dead, int rank);

}  // namespace fast::exchange
