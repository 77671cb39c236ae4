// How a worker's part of shared memory is laid out: a header and three slots. Pure address
// arithmetic over memory that threads or processes share; the protocol is in slot_exchange.cpp and
// slot_peers.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fast/core/memory.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/exchange/group.hpp>
#include <limits>

namespace fast::exchange {

inline constexpr std::uint64_t slot_count = 3;
inline constexpr std::uint64_t board_magic = 0x31304c5453414653;  // "SFASTL01"

inline constexpr std::int64_t being_written = std::numeric_limits<std::int64_t>::min();

/// Groups of atomics on cache lines of their own. Written by the worker itself, but for `waiters`
/// and `failure_claimed`.
struct WorkerHeader {
  struct alignas(cache_line_bytes) Constant {
    std::atomic<std::uint64_t> magic, shape_hash;
  } constant;
  struct alignas(cache_line_bytes) Publication {
    std::atomic<std::uint64_t> sequence;  ///< publications; the newest is in slot sequence mod 3
    /// The first and last rounds that the slots' payloads are for; first: or being_written.
    std::atomic<std::int64_t> rounds[slot_count], until[slot_count];
    std::atomic<std::uint8_t> has_weights[slot_count];  ///< beside the message
  } publication;
  struct alignas(cache_line_bytes) Reading {
    std::atomic<std::int64_t> consumed;  ///< every source's slot of rounds < consumed has been read
    std::atomic<std::int64_t> progress;  ///< rounds finished
  } reading;
  struct alignas(cache_line_bytes) Life {
    std::atomic<std::uint64_t> heartbeat;
    std::atomic<std::uint64_t> activity;  ///< rises while anybody makes progress, see heart.cpp
    std::atomic<std::uint32_t> status;
  } life;
  struct alignas(cache_line_bytes) Bell {
    std::atomic<std::uint32_t> count;    ///< rung whenever anything above but the heartbeat changes
    std::atomic<std::uint32_t> waiters;  ///< those asleep on `count`
  } bell;
  /// In mirrors alone: the publication that is coming in.
  struct alignas(cache_line_bytes) Arriving {
    std::atomic<std::uint64_t> version;  ///< odd while what follows changes
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::int64_t> first, until;  ///< rounds; none where first is later
    std::atomic<std::uint64_t> bytes;        ///< of the slot, from its beginning
    std::atomic<std::uint64_t> parts;        ///< that have come, of all publications
  } arriving;
  struct alignas(cache_line_bytes) Claim {
    std::atomic<std::uint32_t> failure_claimed;  ///< in worker 0's header, for the whole group
  } claim;

  /// This worker makes progress; another, whose activity is `activity`, does.
  void note_progress() { life.activity.fetch_add(1, std::memory_order_relaxed); }
  void hear_of_progress(std::uint64_t activity);
  /// Wakes those that wait for this worker; call after the change they wait for.
  void ring();
  /// Sleeps until the bell, which had been rung `rung` times, is rung again, or for so long (less
  /// than a second). Blocking.
  void await_ring(std::uint32_t rung, std::chrono::nanoseconds limit);
};

class SlotBoard {
 public:
  SlotBoard(Region region, const PayloadShape& shape);

  static std::size_t part_bytes(const PayloadShape& shape);
  /// Where in a part the slot of publication `sequence` begins, and how long a slot is: what to
  /// pull from afar.
  static std::size_t slot_offset(const PayloadShape& shape, std::uint64_t sequence);
  static std::size_t slot_bytes(const PayloadShape& shape);
  /// Where in a slot the payload's vector 0 begins, where the message ends and the weights begin.
  static std::size_t data_offset(const PayloadShape& shape);
  static std::size_t message_bytes(const PayloadShape& shape);
  static std::size_t weights_offset(const PayloadShape& shape);

  int workers() const { return static_cast<int>(region_.parts.size()); }
  const PayloadShape& shape() const { return shape_; }
  WorkerHeader& header(int worker) const {
    return *reinterpret_cast<WorkerHeader*>(region_.parts[static_cast<std::size_t>(worker)]);
  }
  std::atomic<std::int64_t>& round(int worker, std::uint64_t sequence) const {
    return header(worker).publication.rounds[sequence % slot_count];
  }
  std::atomic<std::int64_t>& until(int worker, std::uint64_t sequence) const {
    return header(worker).publication.until[sequence % slot_count];
  }
  std::atomic<std::uint8_t>& has_weights(int worker, std::uint64_t sequence) const {
    return header(worker).publication.has_weights[sequence % slot_count];
  }
  MutablePayload payload(int worker, std::uint64_t sequence) const;
  std::byte* slot(int worker, std::uint64_t sequence) const;
  /// True when what has been read of the slot of a publication, whose first round is `round`, was
  /// that publication's. Orders the loads before.
  bool still_holds(int worker, std::uint64_t sequence, std::int64_t round) const;
  /// True when the worker's newest publication is for later rounds than `round` and none that is
  /// there is for `round`.
  bool has_gone_past(int worker, std::int64_t round) const;

 private:
  Region region_;
  PayloadShape shape_;
};

}  // namespace fast::exchange
