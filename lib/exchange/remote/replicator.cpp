#include "exchange/remote/replicator.hpp"

#include <algorithm>

#include "core/contains.hpp"

namespace fast::exchange {
namespace {

/// Rounds below 0 are no neighbor's.
bool is_of_many(std::int64_t first_round, std::int64_t last_round) {
  return first_round != last_round || first_round < 0;
}

template <class T>
bool raise(std::atomic<T>& to, T value) {
  if (to.load(std::memory_order_relaxed) >= value) return false;
  to.store(value, std::memory_order_release);
  return true;
}

}  // namespace

MessagePart RemoteEdges::part_from(int source, std::int64_t first_round,
                                   std::int64_t last_round) const {
  const bool is_whole = is_of_many(first_round, last_round);
  return board->layout().carried(is_whole ? PayloadPart() : plan(first_round).part_from(source));
}

MessagePart RemoteEdges::part_to(int reader, std::int64_t first_round,
                                 std::int64_t last_round) const {
  const bool is_whole = is_of_many(first_round, last_round);
  return board->layout().carried(is_whole ? PayloadPart() : plan(first_round).part_to(reader));
}

std::optional<std::int64_t> RemoteEdges::first_read(int worker, std::int64_t from,
                                                    std::int64_t to) const {
  for (std::int64_t round = from; round <= to; ++round) {
    if (contains(plan(round).sources, worker)) return round;
  }
  return std::nullopt;
}

std::optional<std::int64_t> RemoteEdges::first_read_by(int worker, std::int64_t from,
                                                       std::int64_t to) const {
  for (std::int64_t round = from; round <= to; ++round) {
    if (contains(plan(round).destinations, worker)) return round;
  }
  return std::nullopt;
}

PeerCounters PeerCounters::of(const WorkerHeader& header) {
  return {header.reading.consumed.load(std::memory_order_acquire),
          header.reading.progress.load(std::memory_order_acquire),
          header.life.heartbeat.load(std::memory_order_relaxed),
          header.life.activity.load(std::memory_order_relaxed)};
}

std::byte* MirrorWriter::begin(std::int64_t first_round, std::int64_t last_round) {
  if (!is_provided_) board_.provide_mirror(worker_);
  is_provided_ = true;
  begin_writing(board_.round(worker_, mirrored_ + 1));
  auto& arriving = board_.header(worker_).arriving;
  arriving.version.fetch_add(1);
  arriving.sequence.store(mirrored_ + 1, std::memory_order_release);
  arriving.first.store(first_round, std::memory_order_release);
  arriving.until.store(last_round, std::memory_order_release);
  arriving.bytes.store(0, std::memory_order_release);
  arriving.version.fetch_add(1);
  return board_.slot(worker_, mirrored_ + 1);
}

void MirrorWriter::arrived(std::size_t bytes) {
  WorkerHeader& mirror = board_.header(worker_);
  mirror.arriving.bytes.store(bytes, std::memory_order_release);
  note_part();
  mirror.notify();
}

void MirrorWriter::publish(std::int64_t first_round, std::int64_t last_round) {
  WorkerHeader& mirror = board_.header(worker_);
  ++mirrored_;
  store_publication(mirror.publication, mirrored_, first_round, last_round);
  mirror.notify();
}

void MirrorWriter::extend(std::int64_t last_round) {
  WorkerHeader& mirror = board_.header(worker_);
  extend_publication(mirror.publication, mirrored_, last_round);
  mirror.notify();
}

bool MirrorWriter::set_status(WorkerStatus status) {
  WorkerHeader& mirror = board_.header(worker_);
  if (status_of(mirror) == status) return false;
  mirror.life.status.store(static_cast<std::uint32_t>(status), std::memory_order_release);
  mirror.notify();
  return true;
}

bool merge_counters(WorkerHeader& mirror, const PeerCounters& counters) {
  raise(mirror.life.heartbeat, counters.heartbeat);
  mirror.merge_activity(counters.activity);
  const bool consumed_more = raise(mirror.reading.consumed, counters.consumed);
  const bool progressed = raise(mirror.reading.progress, counters.progress);
  if (!consumed_more && !progressed) return false;
  mirror.notify(Change::reading);
  return true;
}

bool MirrorWriter::merge(const WorkerHeader& seen) {
  WorkerHeader& mirror = board_.header(worker_);
  const std::uint64_t slow_ns = seen.reading.slow_read_ns.load(std::memory_order_relaxed);
  mirror.reading.slow_read_ns.store(slow_ns, std::memory_order_relaxed);
  return merge_counters(mirror, PeerCounters::of(seen));
}

}  // namespace fast::exchange
