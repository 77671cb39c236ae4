// What an all-reduce says when a worker has died.
#pragma once

#include <functional>
#include <vector>

namespace fast::exchange {

/// The workers that are known to have ended.
using Ended = std::function<std::vector<int>()>;

/// Throws if `dead` returns any rank. A death holds all workers alike, so one of them reports it by
/// Error(deadline): the lowest that lives. The others wait for a second, because the process
/// manager ends all ranks when one leaves. They call `dead` again then: the worker that had to
/// report may have died too. After that, they throw Error(peer_failed).
void fail_without(const Ended& dead, int rank);

}  // namespace fast::exchange
