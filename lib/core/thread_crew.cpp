#include "core/thread_crew.hpp"

#include <fast/core/error.hpp>
#include <system_error>
#include <utility>

namespace fast {

ThreadCrew::ThreadCrew(int threads) {
  try {
    while (std::ssize(threads_) + 1 < threads)
      threads_.emplace_back([this](const std::stop_token& stop) { help(stop); });
  } catch (const std::system_error& error) {
    fail(ErrorKind::resource, "thread {} of {} cannot be made: {}; take fewer threads",
         threads_.size() + 2, threads, error.what());
  }
}

void ThreadCrew::each(std::size_t count, const std::function<void(std::size_t)>& part) {
  {
    const std::lock_guard lock(mutex_);
    part_ = &part;
    count_ = count;
    next_ = 0;
    ++loop_;
  }
  changed_.notify_all();
  take_parts(count, part);
  std::unique_lock lock(mutex_);
  part_ = nullptr;  // threads that have not woken up yet are not waited for
  changed_.wait(lock, [this] { return helping_ == 0; });
  if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

void ThreadCrew::take_parts(std::size_t count, const std::function<void(std::size_t)>& part) {
  try {
    for (std::size_t at = next_++; at < count; at = next_++) part(at);
  } catch (...) {
    next_ = count;
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadCrew::help(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return part_ != nullptr && loop_ != seen; })) {
    seen = loop_;
    ++helping_;
    const auto& part = *part_;
    const std::size_t count = count_;
    lock.unlock();
    take_parts(count, part);
    lock.lock();
    if (--helping_ == 0) changed_.notify_all();
  }
}

}  // namespace fast
