// Notices that the host at the other end of a TCP connection is lost or that the link is cut.
#pragma once

#include <fast/core/deadline.hpp>

namespace fastrun {

/// Lets the connection fail when the other host has not answered for this time; it is rounded up
/// to a few seconds. The kernels ask and answer: a stopped process is not taken for a lost host.
void fail_when_lost(int connection, fast::Seconds limit);

}  // namespace fastrun
