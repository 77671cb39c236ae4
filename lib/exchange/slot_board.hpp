// How a worker's part of shared memory is laid out: a header and three slots. Pure address
// arithmetic over memory that threads or processes share; the protocol is in slot_exchange.cpp and
// slot_peers.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <fast/core/memory.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/exchange/group.hpp>
#include <limits>

namespace fast::exchange {

inline constexpr std::uint64_t board_magic = 0x31304c5453414653;  // "SFASTL01"
inline constexpr std::uint64_t slot_count = 3;
inline constexpr std::int64_t being_written = std::numeric_limits<std::int64_t>::min();

/// Groups of atomics on cache lines of their own. Written by the worker itself, but for `waiters`
/// and `failure_claimed`.
struct WorkerHeader {
  struct alignas(cache_line_bytes) Constant {
    std::atomic<std::uint64_t> magic, shape_hash;
  } constant;
  struct alignas(cache_line_bytes) Publication {
    std::atomic<std::uint64_t> sequence;  ///< publications; the newest is in slot sequence mod 3
  } publication;
  struct alignas(cache_line_bytes) Reading {
    std::atomic<std::int64_t> consumed;  ///< every source's slot of rounds < consumed has been read
    std::atomic<std::int64_t> progress;  ///< rounds finished
  } reading;
  struct alignas(cache_line_bytes) Life {
    std::atomic<std::uint64_t> heartbeat;
    std::atomic<std::uint32_t> status;
  } life;
  struct alignas(cache_line_bytes) Bell {
    std::atomic<std::uint32_t> count;    ///< rung whenever anything above but the heartbeat changes
    std::atomic<std::uint32_t> waiters;  ///< those asleep on `count`
  } bell;
  struct alignas(cache_line_bytes) Claim {
    std::atomic<std::uint32_t> failure_claimed;  ///< in worker 0's header, for the whole group
  } claim;

  /// Wakes those that wait for this worker; call after the change they wait for.
  void ring();
};

struct alignas(cache_line_bytes) SlotHeader {
  std::atomic<std::int64_t> round;  ///< the payload's, or being_written
};

class SlotBoard {
 public:
  SlotBoard(Region region, const PayloadShape& shape);

  static std::size_t part_bytes(const PayloadShape& shape);

  int workers() const { return static_cast<int>(region_.parts.size()); }
  const PayloadShape& shape() const { return shape_; }
  WorkerHeader& header(int worker) const {
    return *reinterpret_cast<WorkerHeader*>(region_.parts[static_cast<std::size_t>(worker)]);
  }
  std::atomic<std::int64_t>& round(int worker, std::uint64_t sequence) const {
    return reinterpret_cast<SlotHeader*>(slot(worker, sequence))->round;
  }
  MutablePayload payload(int worker, std::uint64_t sequence) const;

 private:
  std::byte* slot(int worker, std::uint64_t sequence) const;

  Region region_;
  PayloadShape shape_;
};

}  // namespace fast::exchange
