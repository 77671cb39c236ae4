#include "membership/periodic_thread.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace fast::membership {
namespace {

constexpr auto quiet_period = std::chrono::milliseconds(100);
constexpr auto busy_period = std::chrono::milliseconds(10);
/// A process that was suspended counts no more than this for that time.
constexpr Seconds longest_tick{0.2};

}  // namespace

PeriodicThread::PeriodicThread(Tick tick) : tick_(std::move(tick)), thread_([this] { run(); }) {}

PeriodicThread::~PeriodicThread() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PeriodicThread::run() {
  auto last = Clock::now();
  for (bool goes_on = true; goes_on;) {
    const auto now = Clock::now();
    const bool hurry = tick_(std::min(Seconds(now - last), longest_tick));
    last = now;
    goes_on = rest(hurry);
  }
}

/// False when the thread shall end.
bool PeriodicThread::rest(bool hurry) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, hurry ? busy_period : quiet_period, [this] { return quit_; });
  return !quit_;
}

}  // namespace fast::membership
