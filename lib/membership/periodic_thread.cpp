#include "membership/periodic_thread.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace fast::membership {
namespace {

constexpr auto quiet_period = std::chrono::milliseconds(100);
constexpr auto busy_period = std::chrono::milliseconds(10);
/// A process that was suspended counts no more than this for that time.
constexpr Seconds longest_tick{0.2};

void tick_until(const std::stop_token& stop, const PeriodicThread::Tick& tick) {
  std::mutex mutex;
  std::condition_variable_any rest;  // only `stop` ends it early
  for (auto last = Clock::now(); !stop.stop_requested();) {
    const auto now = Clock::now();
    const bool hurry = tick(std::min(Seconds(now - last), longest_tick));
    last = now;
    std::unique_lock lock(mutex);
    rest.wait_for(lock, stop, hurry ? busy_period : quiet_period, [] { return false; });
  }
}

}  // namespace

PeriodicThread::PeriodicThread(Tick tick)
    : thread_([tick = std::move(tick)](const std::stop_token& stop) { tick_until(stop, tick); }) {}

}  // namespace fast::membership
