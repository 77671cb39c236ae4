#include <fast/core/deadline.hpp>

#include <exception>

#include "core/ended_by_check.hpp"

namespace fast {
namespace {

constexpr auto period = std::chrono::milliseconds(100);
thread_local WaitCheck* innermost = nullptr;
thread_local std::exception_ptr thrown;  ///< the latest exception of a check

}  // namespace

WaitCheck::WaitCheck(std::function<void()> check)
    : check_(std::move(check)), outer_(innermost), due_(Clock::now() + period) {
  innermost = this;
}

WaitCheck::~WaitCheck() { innermost = outer_; }

/// Not due while it is called: it may wait, too. Due at once after it has thrown.
void WaitCheck::look() {
  const auto now = Clock::now();
  if (now >= due_) {
    due_ = now + period;
    try {
      check_();
    } catch (...) {
      thrown = std::current_exception();
      due_ = now;
      throw;
    }
  }
  if (outer_ != nullptr) outer_->look();
}

void check_wait() {
  if (innermost != nullptr) innermost->look();
}

bool ended_by_check() noexcept { return thrown && std::current_exception() == thrown; }

}  // namespace fast
