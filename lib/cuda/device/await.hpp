// Waits for work of a device.
#pragma once

#include <chrono>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <string_view>
#include <thread>

namespace fast::cuda {

/// Blocks until done() is true. Most waits are short: the thread first yields, then sleeps for
/// short times. Throws Error(deadline).
template <class Done>
void await(const Deadline& deadline, std::string_view what, int device, const Done& done) {
  for (int look = 0; !done(); ++look) {
    require(!deadline.expired(), ErrorKind::deadline,
            "cuda: {} of device {} is not done after {:.1f} s, the limit; see whether a kernel "
            "hangs, or raise the deadline",
            what, device, deadline.limit_s());
    if (look < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace fast::cuda
