// A thread that runs a worker's errands in their order, beside the worker's own thread, which alone
// sends them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace fast::exchange {

class Courier {
 public:
  Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  /// All that was sent is run first.
  ~Courier();

  /// Returns its number.
  std::uint64_t send(std::function<void()> errand);
  /// Blocks until the errands up to that one are done. Throws what the first of all that have
  /// thrown since the last such call has thrown.
  void wait(std::uint64_t number);
  /// Sends and waits; on the calling thread, when there is nothing to wait for.
  void run(std::function<void()> errand);

 private:
  void work();
  void make(const std::function<void()>& errand, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> errands_;
  std::uint64_t sent_ = 0, done_ = 0;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace fast::exchange
