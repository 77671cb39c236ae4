// Which exceptions come from a WaitCheck.
#pragma once

namespace fast {

/// Call it in a catch block. Returns true if a WaitCheck of this thread has thrown the exception.
bool ended_by_check() noexcept;

}  // namespace fast
