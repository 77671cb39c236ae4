// Points in time by which a wait must have ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <utility>

namespace fast {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Counts the time that its process runs, from its construction on. Between two looks it counts at
/// most `longest_step`, so that a process that was suspended has lost nothing. Whoever waits must
/// look more often than that. A non-positive limit has expired at once. Used by one thread.
class Deadline {
 public:
  static constexpr Seconds longest_step{0.25};

  explicit Deadline(Seconds limit) : looked_(Clock::now()), limit_(limit) {}
  double elapsed_s() const {
    const auto now = Clock::now();
    elapsed_ += std::min(Seconds(now - std::exchange(looked_, now)), longest_step);
    return elapsed_.count();
  }
  double limit_s() const { return limit_.count(); }
  bool expired() const { return elapsed_s() >= limit_s(); }

 private:
  mutable Clock::time_point looked_;
  mutable Seconds elapsed_{0};
  Seconds limit_;
};

// How a program ends the waits of the library.
//
//   std::atomic<bool> asked = false;   // set by a signal handler, say
//   const fast::WaitCheck check([&] { if (asked) throw Stopped(); });
//   worker.step(train);                // throws Stopped within about 0.1 s, though a neighbor
//   hangs

/// While it lives, calls of the library that wait on this thread for other workers call `check`
/// about ten times a second. What `check` throws ends the wait, and the call throws it. The worker
/// cannot make another round then. Worker::step() has announced it as failed. After a call of
/// Worker::begin_round() or Worker::end_round(), the program may call Worker::finish() instead, and
/// the others go on. Destructors let nothing through that `check` throws. Objects of one thread end
/// in the opposite order of their beginning; the check of each is called.
class WaitCheck {
 public:
  explicit WaitCheck(std::function<void()> check);
  ~WaitCheck();
  WaitCheck(const WaitCheck&) = delete;
  WaitCheck& operator=(const WaitCheck&) = delete;

 private:
  friend void check_wait();
  void look();

  std::function<void()> check_;
  WaitCheck* outer_;
  Clock::time_point due_;
};

/// Calls the checks of this thread that are due. Loops that wait call it.
void check_wait();

/// Calls them while `lock` is open. If a check throws, the lock stays open.
inline void check_wait(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  check_wait();
  lock.lock();
}

}  // namespace fast
