// What an all-reduce says when a worker has died.
#pragma once

#include <fast/core/deadline.hpp>

#include <functional>
#include <vector>

namespace fast::exchange {

/// The workers that are known to have ended.
using Ended = std::function<std::vector<int>()>;

/// How they have ended.
struct Ends {
  Ended all;
  Ended failed;  ///< of all: those that ended by themselves, with an error that they have told
};

/// Throws if any worker has ended. If one of them has failed, it has told why: Error(peer_failed).
/// A death holds all workers alike, so one of them reports it by Error(deadline): the lowest that
/// lives. The others wait for it, because the process manager ends all ranks when one leaves: until
/// a worker has failed; or until the lowest has died too, then the next one reports. A worker that
/// does not come to report within `patience` counts as dead.
void fail_without(const Ends& ends, int rank, Seconds patience = Seconds(10));

}  // namespace fast::exchange
