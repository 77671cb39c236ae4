#include "exchange/shared/heartbeat.hpp"

#include <algorithm>
#include <utility>

namespace fast::exchange {
namespace {

using membership::Traffic;

/// A message of a worker on another host is on its way into its mirror.
Traffic traffic_of(const WorkerHeader& worker) {
  const std::uint64_t begun = worker.arriving.sequence.load(std::memory_order_relaxed);
  const std::uint64_t published = worker.publication.sequence.load(std::memory_order_relaxed);
  return begun > published ? Traffic::message : Traffic::heartbeats;
}

}  // namespace

Heartbeat::Heartbeat(std::shared_ptr<const SlotBoard> board, int rank,
                     std::optional<Seconds> suspect_after)
    : board_(std::move(board)), rank_(rank), detector_(board_->workers(), suspect_after) {}

/// `activity` is a logical clock. A worker that makes progress adds 1 to it, and every worker
/// adopts the largest value that it sees. So it rises everywhere while any worker makes progress,
/// and does not rise while workers wait for each other in a circle.
void Heartbeat::beat() {
  WorkerHeader& header = board_->header(rank_);
  header.life.heartbeat.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t largest = 0, arrived = 0;
  for (int worker = 0; worker < board_->workers(); ++worker) {
    if (worker == rank_) continue;
    const PeerState state = look(worker);
    largest = std::max(largest, state.activity);
    arrived += state.arrived;
  }
  header.merge_activity(largest);
  if (std::exchange(arrived_, arrived) != arrived) header.note_progress();
}

PeerState Heartbeat::look(int worker) {
  const WorkerHeader& header = board_->header(worker);
  const PeerState state = state_of(header);
  const std::uint64_t now = board_->header(rank_).life.heartbeat.load(std::memory_order_relaxed);
  detector_.observe(worker, state, now, traffic_of(header));
  return state;
}

bool Heartbeat::is_suspect(int worker) {
  look(worker);
  return detector_.is_suspect(worker);
}

}  // namespace fast::exchange
