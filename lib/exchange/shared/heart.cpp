#include "exchange/shared/heart.hpp"

#include <algorithm>
#include <utility>

namespace fast::exchange {

PeerState state_of(const WorkerHeader& header) {
  PeerState state;
  state.status = static_cast<WorkerStatus>(header.life.status.load(std::memory_order_acquire));
  state.progress = header.reading.progress.load(std::memory_order_acquire);
  state.sequence = header.publication.sequence.load(std::memory_order_acquire);
  state.heartbeat = header.life.heartbeat.load(std::memory_order_relaxed);
  state.activity = header.life.activity.load(std::memory_order_relaxed);
  state.arrived = header.arriving.parts.load(std::memory_order_relaxed);
  return state;
}

Heart::Heart(std::shared_ptr<const SlotBoard> board, int rank, Seconds suspect_after)
    : board_(std::move(board)), rank_(rank), detector_(board_->workers(), suspect_after) {}

/// `activity` is a logical clock: a worker that makes progress sets it to more than all it has
/// heard of, everybody takes over the largest. So it rises everywhere while anybody makes progress,
/// and workers that wait for each other in a circle do not raise it.
void Heart::beat() {
  WorkerHeader& header = board_->header(rank_);
  header.life.heartbeat.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t heard = 0, arrived = 0;
  for (int worker = 0; worker < board_->workers(); ++worker) {
    if (worker == rank_) continue;
    const PeerState state = look(worker);
    heard = std::max(heard, state.activity);
    arrived += state.arrived;
  }
  header.hear_of_progress(heard);
  if (std::exchange(arrived_, arrived) != arrived) header.note_progress();
}

PeerState Heart::look(int worker) {
  const PeerState state = state_of(board_->header(worker));
  const std::uint64_t now = board_->header(rank_).life.heartbeat.load(std::memory_order_relaxed);
  detector_.observe(worker, state, now);
  return state;
}

bool Heart::is_suspect(int worker) {
  look(worker);
  return detector_.is_suspect(worker);
}

}  // namespace fast::exchange
