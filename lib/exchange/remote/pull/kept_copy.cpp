#include "exchange/remote/pull/kept_copy.hpp"

#include <algorithm>
#include <cstring>

namespace fast::exchange {
namespace {

constexpr auto check_again = std::chrono::microseconds(500);

}  // namespace

bool KeptCopy::advance(Clock::time_point now) {
  if (!edges_.board->layout().keeps_copy() || now - looked_at_ < check_again) return false;
  looked_at_ = now;
  const Seconds slowest = slowest_read();
  if (slowest == Seconds(0) || now - copied_at_ < 2 * slowest || !copy_newest()) return false;
  copied_at_ = now;
  return true;
}

/// Of readers in this round and in the next.
Seconds KeptCopy::slowest_read() const {
  std::uint64_t slowest_ns = 0;
  const std::int64_t now = edges_.consumed();
  for (const std::int64_t round : {now, now + 1}) {
    for (const int reader : edges_.plan(round).destinations) {
      const WorkerHeader& header = edges_.board->header(reader);
      if (!is_remote_(reader) || has_ended(status_of(header))) continue;
      slowest_ns =
          std::max(slowest_ns, header.reading.slow_read_ns.load(std::memory_order_relaxed));
    }
  }
  return std::chrono::nanoseconds(slowest_ns);
}

/// The worker's own thread may write to the slot meanwhile. Then there is no copy for a moment.
bool KeptCopy::copy_newest() {
  const SlotBoard& board = *edges_.board;
  auto& publication = board.header(edges_.rank).publication;
  auto& kept = board.header(edges_.rank).kept;
  const std::uint64_t sequence = publication.sequence.load(std::memory_order_acquire);
  const std::int64_t first = board.round(edges_.rank, sequence).load(std::memory_order_acquire);
  const std::int64_t until = board.until(edges_.rank, sequence).load(std::memory_order_acquire);
  const bool is_known = kept.sequence.load(std::memory_order_relaxed) == sequence &&
                        kept.first.load(std::memory_order_relaxed) == first &&
                        kept.until.load(std::memory_order_relaxed) == until;
  if (sequence == 0 || first == being_written || is_known) return false;
  begin_writing(kept.first);
  copy_optimistically(board.kept(edges_.rank), board.slot(edges_.rank, sequence),
                      board.layout().message_bytes());
  if (!board.still_holds(edges_.rank, sequence, first)) return false;
  kept.until.store(until, std::memory_order_relaxed);
  kept.sequence.store(sequence, std::memory_order_relaxed);
  kept.first.store(first, std::memory_order_release);
  return true;
}

}  // namespace fast::exchange
