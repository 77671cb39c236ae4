// Waiting on a word that another process may change. std::atomic::wait is private to a process, so
// the system call is used directly; the word must be 32 bits.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace fast::exchange {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Returns when woken, when `word` differs from `expected`, or after `limit`, less than
/// a second.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::chrono::nanoseconds limit) {
  const timespec timeout{0, limit.count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace fast::exchange
