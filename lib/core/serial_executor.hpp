// A thread that runs a worker's tasks in their order, beside the worker's own thread, which alone
// submits them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace fast {

class SerialExecutor {
 public:
  SerialExecutor();
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;
  /// All that was submitted is run first.
  ~SerialExecutor();

  /// Returns its number.
  std::uint64_t submit(std::function<void()> task);
  /// Blocks until the tasks up to that one are done. Throws what the first of all that have
  /// thrown since the last such call has thrown.
  void wait(std::uint64_t number);
  /// Submits and waits; on the calling thread, when there is nothing to wait for.
  void run(std::function<void()> task);

 private:
  void work();
  void run_one(const std::function<void()>& task, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::uint64_t submitted_ = 0, done_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace fast
