#include "exchange/shared/slot_peers.hpp"

#include <cstring>

#include "exchange/shared/seqlock.hpp"

namespace fast::exchange {
namespace {
constexpr Seconds heartbeat_period{1 / beats_per_second};
constexpr int snapshot_attempts = 100;
constexpr Seconds remote_look{1}, repeated_look{0.05};
constexpr Seconds remote_snapshot{600};  // while parts arrive
}  // namespace

SlotPeers::SlotPeers(std::shared_ptr<Heartbeat> heartbeat, std::shared_ptr<RemoteAccess> remote)
    : heartbeat_(std::move(heartbeat)),
      board_(heartbeat_->board()),
      rank_(heartbeat_->rank()),
      remote_(std::move(remote)),
      thread_([this] { work(); }) {}

SlotPeers::~SlotPeers() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  thread_.join();
}

void SlotPeers::work() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    heartbeat_->beat();
    stopped_changed_.wait_for(lock, heartbeat_period);
  }
}

PeerState SlotPeers::peer(int worker) const {
  if (is_remote(worker)) look(worker);
  return heartbeat_->look(worker);
}

bool SlotPeers::is_suspect(int worker) const { return heartbeat_->is_suspect(worker); }

Seconds SlotPeers::suspect_after(int worker) const { return heartbeat_->suspect_after(worker); }

bool SlotPeers::announce(WorkerStatus status) {
  bool first = false;
  if (status == WorkerStatus::failed) {
    std::uint32_t unclaimed = 0;
    first = board_->header(0).claim.failure_claimed.compare_exchange_strong(unclaimed, 1);
  }
  WorkerHeader& header = board_->header(rank_);
  header.claim.is_cause.store(first && board_->failed().empty() ? 1 : 0);
  if (status == WorkerStatus::failed && has_ended(state_of(header).status)) return first;
  header.life.status.store(static_cast<std::uint32_t>(status), std::memory_order_release);
  header.note_progress();
  header.notify();
  return first;
}

/// False when a worker of another host does not answer. One that did not do so the last time holds
/// the caller only for a moment.
bool SlotPeers::look(int worker) const {
  std::unique_lock lock(mutex_);
  const Seconds limit = silent_.count(worker) > 0 ? repeated_look : remote_look;
  lock.unlock();
  const bool answers = remote_->look(worker, Deadline(limit));
  lock.lock();
  if (answers) {
    silent_.erase(worker);
  } else {
    silent_.insert(worker);
  }
  return answers;
}

/// A suspect must answer a look first: one that is gone would hold the caller for long.
Snapshot SlotPeers::remote_snapshot_of(int worker, std::span<std::byte> room) const {
  const bool has_finished = state_of(board_->header(worker)).status == WorkerStatus::finished;
  if (!has_finished && is_suspect(worker) && !look(worker)) return Snapshot::none;
  return remote_->snapshot(worker, room, Deadline(remote_snapshot));
}

Snapshot SlotPeers::snapshot(int worker, std::span<std::byte> room) const {
  if (is_remote(worker)) return remote_snapshot_of(worker, room);
  const auto& sequence = board_->header(worker).publication.sequence;
  for (int attempt = 0; attempt < snapshot_attempts; ++attempt) {
    const std::uint64_t newest = sequence.load(std::memory_order_acquire);
    if (newest == 0) return Snapshot::none;
    const auto& round = board_->round(worker, newest);
    const std::int64_t of_round = round.load(std::memory_order_acquire);
    const bool weights = board_->has_weights(worker, newest).load(std::memory_order_relaxed) != 0;
    const auto slot = board_->payload(worker, newest);
    const std::size_t bytes =
        weights ? board_->shape().weights_bytes : board_->shape().vector_bytes;
    const std::byte* from =
        read_optimistically(weights ? slot.weights : slot.vector(0), room.data(), bytes);
    if (from != room.data()) std::memcpy(room.data(), from, bytes);
    if (still_holds_unwaited(board_->header(worker).publication, newest, of_round)) {
      return weights ? Snapshot::weights : Snapshot::message;
    }
    std::this_thread::yield();
  }
  return Snapshot::none;
}

}  // namespace fast::exchange
