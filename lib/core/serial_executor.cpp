#include "core/serial_executor.hpp"

#include <utility>

namespace fast {
namespace {
constexpr auto look_period = std::chrono::milliseconds(50);
}

SerialExecutor::SerialExecutor() : thread_([this] { work(); }) {}

SerialExecutor::~SerialExecutor() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t SerialExecutor::submit(std::function<void()> task) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    number = ++submitted_;
  }
  changed_.notify_all();
  return number;
}

void SerialExecutor::run(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  if (done_ < submitted_) {
    lock.unlock();
    return wait(submit(std::move(task)));
  }
  const std::uint64_t number = ++submitted_;
  run_one(task, lock);
  lock.unlock();
  wait(number);
}

void SerialExecutor::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, look_period, [&] { return done_ >= number; })) check_wait(lock);
  rethrow_failure();
}

bool SerialExecutor::wait(std::uint64_t number, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, look_period, [&] { return done_ >= number; })) {
    check_wait(lock);
    if (deadline.expired()) return false;
  }
  rethrow_failure();
  return true;
}

void SerialExecutor::rethrow_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool SerialExecutor::pause(Seconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return !tasks_.empty(); });
}

void SerialExecutor::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    run_one(task, lock);
    changed_.notify_all();
  }
}

void SerialExecutor::run_one(const std::function<void()>& task,
                             std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::exception_ptr failure;
  try {
    task();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (!failure_) failure_ = failure;
  ++done_;
}

}  // namespace fast
