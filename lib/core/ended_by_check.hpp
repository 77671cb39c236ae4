// Which exceptions come from a WaitCheck.
#pragma once

namespace fast {

/// In a catch block: true if the exception is one that a WaitCheck of this thread has thrown.
bool ended_by_check() noexcept;

}  // namespace fast
