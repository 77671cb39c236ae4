#include "exchange/shared/worker_header.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace fast::exchange {
namespace {

// std::atomic::wait is private to a process, so the system call is used directly. Its word must
// have 32 bits.
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Returns when woken, when `word` differs from `expected`, or after `limit`, less than
/// a second.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds limit) {
  const timespec timeout{0, limit.count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void WorkerHeader::merge_activity(std::uint64_t activity) {
  std::uint64_t known = life.activity.load(std::memory_order_relaxed);
  while (known < activity && !life.activity.compare_exchange_weak(known, activity)) continue;
}

/// All of them: those that wait for something else wait again. Until then, nobody wakes them again.
/// A bit that is taken here may be that of a thread which does not sleep yet: as `count` rises once
/// more, it will not.
void WorkerHeader::wake_waiters(std::uint32_t changed) {
  signal.awaited.fetch_and(~changed, std::memory_order_seq_cst);
  signal.count.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(signal.count);
}

/// No wake-up is lost. If notify() does not see the bit, it was set later than `count` rose: then
/// `count` is not `seen`, or `seen` was loaded after the change. If another thread took the bit,
/// its wake-up follows if this one sleeps by then; if not, `count` is no longer `seen`.
void WorkerHeader::wait_for_signal(std::uint32_t seen, std::chrono::nanoseconds limit,
                                   Change awaited) {
  signal.waiters.fetch_add(1, std::memory_order_seq_cst);
  signal.awaited.fetch_or(static_cast<std::uint32_t>(awaited), std::memory_order_seq_cst);
  futex_wait(signal.count, seen, limit);
  signal.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

PeerState state_of(const WorkerHeader& header) {
  PeerState state;
  state.status = status_of(header);
  state.progress = header.reading.progress.load(std::memory_order_acquire);
  state.sequence = header.publication.sequence.load(std::memory_order_acquire);
  state.heartbeat = header.life.heartbeat.load(std::memory_order_relaxed);
  state.activity = header.life.activity.load(std::memory_order_relaxed);
  state.arrived = header.arriving.parts.load(std::memory_order_relaxed);
  return state;
}

Reduced reduced_of(const WorkerHeader& header) {
  const auto& from = header.result;
  const auto stage = static_cast<Reduced::Stage>(from.stage.load(std::memory_order_acquire));
  return {stage,
          {from.part_mean_square.load(std::memory_order_relaxed),
           from.part_workers.load(std::memory_order_relaxed)},
          {from.mean_square.load(std::memory_order_relaxed),
           from.workers.load(std::memory_order_relaxed)}};
}

void store_reduced(WorkerHeader& header, const Reduced& reduced) {
  auto& to = header.result;
  to.part_mean_square.store(reduced.part.mean_square, std::memory_order_relaxed);
  to.part_workers.store(reduced.part.workers, std::memory_order_relaxed);
  to.mean_square.store(reduced.all.mean_square, std::memory_order_relaxed);
  to.workers.store(reduced.all.workers, std::memory_order_relaxed);
  to.stage.store(static_cast<std::uint32_t>(reduced.stage), std::memory_order_release);
}

}  // namespace fast::exchange
