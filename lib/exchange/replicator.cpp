#include "exchange/replicator.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

bool contains(const std::vector<int>& workers, int worker) {
  return std::find(workers.begin(), workers.end(), worker) != workers.end();
}

template <class T>
bool raise(std::atomic<T>& to, T value) {
  if (to.load(std::memory_order_relaxed) >= value) return false;
  to.store(value, std::memory_order_release);
  return true;
}

}  // namespace

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
          header.life.heartbeat.load(std::memory_order_relaxed)};
}

bool take_over(WorkerHeader& mirror, const PeerCounters& counters) {
  raise(mirror.life.heartbeat, counters.heartbeat);
  const bool consumed_more = raise(mirror.reading.consumed, counters.consumed);
  const bool progressed = raise(mirror.reading.progress, counters.progress);
  if (!consumed_more && !progressed) return false;
  mirror.ring();
  return true;
}

}  // namespace fast::exchange
