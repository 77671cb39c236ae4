// The header of a worker's part of shared memory: what other workers know of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fast/core/memory.hpp>

#include "exchange/peers.hpp"
#include "exchange/shared/slot_protocol.hpp"

namespace fast::exchange {

inline constexpr std::uint64_t board_magic = 0x31304c5453414653;  // "SFASTL01"

/// What threads wait for: bits.
enum class Change : std::uint32_t { reading = 1, other = 2, any = 3 };

/// Groups of atomics on cache lines of their own. Only the worker itself writes them, except
/// `waiters`, `awaited` and `failure_claimed`.
struct WorkerHeader {
  struct alignas(cache_line_bytes) Constant {
    std::atomic<std::uint64_t> magic;
  } constant;
  struct alignas(cache_line_bytes) Publication {
    std::atomic<std::uint64_t> sequence;  ///< publications; the newest is in slot sequence mod 3
    /// The first and last rounds of the slots' payloads; the first may be being_written.
    std::atomic<std::int64_t> rounds[slot_count], until[slot_count];
    std::atomic<std::uint8_t> has_weights[slot_count];  ///< beside the message
  } publication;
  struct alignas(cache_line_bytes) Reading {
    std::atomic<std::int64_t> consumed;  ///< every source's slot of rounds < consumed has been read
    std::atomic<std::int64_t> progress;  ///< rounds finished
    /// How long its reads of other hosts' slots take, where slots are written again sooner; else 0.
    std::atomic<std::uint64_t> slow_read_ns;
  } reading;
  /// A copy of a publication that stays longer than those in the slots; see kept_copy.hpp.
  struct alignas(cache_line_bytes) Kept {
    std::atomic<std::uint64_t> sequence;     ///< of the publication; 0: there is no copy
    std::atomic<std::int64_t> first, until;  ///< its rounds; the first may be being_written
  } kept;
  struct alignas(cache_line_bytes) Life {
    std::atomic<std::uint64_t> heartbeat;
    std::atomic<std::uint64_t> activity;  ///< a logical clock, see heartbeat.cpp
    std::atomic<std::uint32_t> status;
  } life;
  struct alignas(cache_line_bytes) Signal {
    std::atomic<std::uint32_t> count;    ///< rises after any change above but of Life's counters
    std::atomic<std::uint32_t> waiters;  ///< threads that sleep on `count`
    std::atomic<std::uint32_t> awaited;  ///< by those that nobody has woken: bits of Change
  } signal;
  /// In mirrors alone: the publication that is arriving.
  struct alignas(cache_line_bytes) Arriving {
    std::atomic<std::uint64_t> version;  ///< odd while the fields below change
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::int64_t> first, until;  ///< rounds; none if until < first
    std::atomic<std::uint64_t> bytes;        ///< of the slot, from its beginning
    std::atomic<std::uint64_t> parts;        ///< that have arrived, of all publications
    /// As of the latest look. Life's status of a neighbor changes later, after its publications.
    std::atomic<std::uint32_t> seen_status;
  } arriving;
  /// See Reduced.
  struct alignas(cache_line_bytes) Result {
    std::atomic<std::uint32_t> stage;  ///< written last
    std::atomic<double> part_mean_square, mean_square;
    std::atomic<std::int64_t> part_workers, workers;
  } result;
  struct alignas(cache_line_bytes) Claim {
    std::atomic<std::uint32_t> failure_claimed;  ///< in worker 0's header, for the whole group
    std::atomic<std::uint32_t> is_cause;  ///< this worker failed before it knew of another failure
  } claim;

  /// This worker has made progress.
  void note_progress() { life.activity.fetch_add(1, std::memory_order_relaxed); }
  /// Raises the activity to that of another worker.
  void merge_activity(std::uint64_t activity);
  /// Wakes the threads that wait for such a change of this worker. Call it after the change.
  void notify(Change change = Change::any) {
    signal.count.fetch_add(1, std::memory_order_seq_cst);
    const auto bits = static_cast<std::uint32_t>(change);
    if ((signal.awaited.load(std::memory_order_seq_cst) & bits) != 0) wake_waiters(bits);
  }
  /// Sleeps while `signal.count` is `seen`, until such a change, or for `limit` (less than a
  /// second). May return early.
  void wait_for_signal(std::uint32_t seen, std::chrono::nanoseconds limit,
                       Change awaited = Change::any);

 private:
  void wake_waiters(std::uint32_t changed);
};
static_assert(sizeof(WorkerHeader::Publication) == cache_line_bytes);

inline WorkerStatus status_of(const WorkerHeader& header) {
  return static_cast<WorkerStatus>(header.life.status.load(std::memory_order_acquire));
}

/// What a worker's header, or its mirror, shows.
PeerState state_of(const WorkerHeader& header);
Reduced reduced_of(const WorkerHeader& header);
void store_reduced(WorkerHeader& header, const Reduced& reduced);

}  // namespace fast::exchange
