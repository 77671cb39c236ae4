#include "exchange/courier.hpp"

#include <utility>

namespace fast::exchange {

Courier::Courier() : thread_([this] { work(); }) {}

Courier::~Courier() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t Courier::send(std::function<void()> errand) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    errands_.push_back(std::move(errand));
    number = ++sent_;
  }
  changed_.notify_all();
  return number;
}

void Courier::run(std::function<void()> errand) {
  std::unique_lock lock(mutex_);
  if (done_ < sent_) {
    lock.unlock();
    return wait(send(std::move(errand)));
  }
  const std::uint64_t number = ++sent_;
  make(errand, lock);
  lock.unlock();
  wait(number);
}

void Courier::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Courier::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !errands_.empty(); });
    if (errands_.empty()) return;
    const auto errand = std::move(errands_.front());
    errands_.pop_front();
    make(errand, lock);
    changed_.notify_all();
  }
}

void Courier::make(const std::function<void()>& errand, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::exception_ptr failure;
  try {
    errand();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (!failure_) failure_ = failure;
  ++done_;
}

}  // namespace fast::exchange
