// A background thread with a queue of tasks, which it runs in their order. One other thread submits
// them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <fast/core/deadline.hpp>
#include <functional>
#include <mutex>
#include <thread>

namespace fast {

class SerialExecutor {
 public:
  SerialExecutor();
  /// Runs all submitted tasks first.
  ~SerialExecutor();

  /// Returns the task's number.
  std::uint64_t submit(std::function<void()> task);
  /// Blocks until the tasks up to that one are done. When tasks have thrown since the last wait,
  /// throws the first of their exceptions. A WaitCheck may end the wait: the tasks go on.
  void wait(std::uint64_t number);
  /// The same up to a deadline. False: the deadline expired first.
  bool wait(std::uint64_t number, const Deadline& deadline);
  /// Submits a task and waits for it. Runs it on the calling thread when no other task is left.
  void run(std::function<void()> task);
  /// Called by a task: sleeps for `time`, or until another task is in the queue. True: one is.
  bool pause(Seconds time);

 private:
  void work();
  void rethrow_failure();
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
