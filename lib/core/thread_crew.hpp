// Threads that share a loop with the thread that calls, and sleep in between.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fast {

/// Not oneTBB: neither do those who only average weights link it, nor can the thread sanitizer see
/// how its threads meet.
class ThreadCrew {
 public:
  /// Of so many threads, the caller's among them. Throws Error(resource) if the system makes no
  /// more.
  explicit ThreadCrew(int threads);

  /// Calls part(0) to part(count - 1), each on some thread, and returns when all have returned.
  /// After the first exception no more parts begin; throws it. One caller at a time.
  void each(std::size_t count, const std::function<void(std::size_t)>& part);

 private:
  void help(const std::stop_token& stop);
  void take_parts(std::size_t count, const std::function<void(std::size_t)>& part);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(std::size_t)>* part_ = nullptr;  ///< null: there is no loop
  std::size_t count_ = 0;
  std::uint64_t loop_ = 0;  ///< number of the latest loop
  int helping_ = 0;         ///< threads that are in the loop, but for the caller's
  std::exception_ptr failure_;
  std::atomic<std::size_t> next_{0};
  std::vector<std::jthread> threads_;  // last: they end before the rest
};

}  // namespace fast
