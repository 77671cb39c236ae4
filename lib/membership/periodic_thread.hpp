// A thread that does something again and again, beside training.
#pragma once

#include <fast/core/deadline.hpp>

#include <functional>
#include <thread>

namespace fast::membership {

/// Calls a function ten times a second, or a hundred times while the function asks for it. Its end
/// waits for the end of a call under way.
class PeriodicThread {
 public:
  /// Gets the time since the last call, as far as the process was running: at most 0.2 s. Returns
  /// true when the next call should follow quickly. Must not throw.
  using Tick = std::function<bool(Seconds elapsed)>;

  /// The first call begins at once.
  explicit PeriodicThread(Tick tick);

 private:
  std::jthread thread_;
};

}  // namespace fast::membership
