// A process that outlives the process manager.
#pragma once

#include <functional>

namespace fastrun {

/// Runs `work` in a child process with a session of its own and returns its exit status. The
/// process manager knows this process only: its signals do not reach the child, and the child goes
/// on when this process is killed.
int in_own_session(const std::function<int()>& work);

}  // namespace fastrun
