// A thread that does something again and again, beside training.
#pragma once

#include <fast/core/deadline.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace fast::membership {

/// Calls a function ten times a second, or a hundred times while the function asks for it.
class PeriodicThread {
 public:
  /// Gets the time since the last call, as far as the process was running: at most 0.2 s. Returns
  /// true when the next call should follow quickly. Must not throw.
  using Tick = std::function<bool(Seconds elapsed)>;

  /// The first call begins at once.
  explicit PeriodicThread(Tick tick);
  /// Waits for the end of a call under way.
  ~PeriodicThread();
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void run();
  bool rest(bool hurry);

  Tick tick_;
  std::mutex mutex_;  ///< guards quit_
  std::condition_variable changed_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace fast::membership
