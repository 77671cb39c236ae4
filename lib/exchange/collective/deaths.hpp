// What an all-reduce says when a worker has died or failed.
#pragma once

#include <fast/core/deadline.hpp>

#include <functional>
#include <vector>

namespace fast::exchange {

/// Some of the workers. Does not wait.
using Ended = std::function<std::vector<int>()>;

/// Which workers have ended, as far as this worker knows.
struct ExitReports {
  Ended all;     ///< null: nobody reports deaths; a worker without a sign of life counts as dead
  Ended failed;  ///< those that have failed: by an error that they have reported or announced
};

/// Throws Error(peer_failed) if a worker has failed. It reports the reason itself.
void stop_for_failure(const ExitReports& ends, int rank);

/// Throws if any worker has ended. If one of them has failed, it has told why: Error(peer_failed).
/// A death holds all workers alike, so one of them reports it by Error(deadline): the lowest that
/// lives. The others wait for it, because the process manager ends all ranks when one leaves: until
/// a worker has failed; or until the lowest has died too, then the next one reports. A worker that
/// does not come to report within `patience` counts as dead.
void fail_without(const ExitReports& ends, int rank, Seconds patience = Seconds(10));

}  // namespace fast::exchange
