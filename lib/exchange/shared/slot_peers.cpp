#include "exchange/shared/slot_peers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "exchange/shared/seqlock.hpp"
#include "mpi/host_abilities.hpp"

namespace fast::exchange {
namespace {
constexpr int snapshot_attempts = 100;
constexpr Seconds remote_look{1}, repeated_look{0.05};
constexpr Seconds remote_snapshot{600};  // while parts arrive

/// Whole pages: of shared memory, or else of this process.
void give_back(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<std::size_t>(memory.data());
  const std::size_t first = round_up(begin, page_bytes);
  const std::size_t end = (begin + memory.size()) / page_bytes * page_bytes;
  if (end <= first) return;
  void* pages = memory.data() + (first - begin);
  if (madvise(pages, end - first, MADV_REMOVE) != 0) madvise(pages, end - first, MADV_DONTNEED);
}

}  // namespace

SlotPeers::SlotPeers(std::shared_ptr<Heartbeat> heartbeat, std::shared_ptr<RemoteAccess> remote)
    : heartbeat_(std::move(heartbeat)),
      board_(heartbeat_->board()),
      rank_(heartbeat_->rank()),
      remote_(std::move(remote)),
      beats_([this](Seconds) {
        heartbeat_->beat();
        return false;
      }) {}

/// A worker of another host may have ended although publications of it are still on their way.
PeerState SlotPeers::peer(int worker) const {
  board_->require_mirror(worker);
  if (!is_remote(worker)) return heartbeat_->look(worker);
  look(worker);
  PeerState state = heartbeat_->look(worker);
  const auto seen = board_->header(worker).arriving.seen_status.load();
  state.status = std::max(state.status, static_cast<WorkerStatus>(seen));
  return state;
}

bool SlotPeers::is_suspect(int worker) const { return heartbeat_->is_suspect(worker); }

Seconds SlotPeers::suspect_after(int worker) const {
  return heartbeat_->detector().suspect_after(worker);
}

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
bool SlotPeers::may_answer(int worker) const {
  const bool has_finished = state_of(board_->header(worker)).status == WorkerStatus::finished;
  return has_finished || !is_suspect(worker) || look(worker);
}

Snapshot SlotPeers::remote_snapshot_of(int worker, std::span<std::byte> room, Piece& piece) const {
  if (!may_answer(worker)) return Snapshot::none;
  return remote_->snapshot(worker, room, piece, Deadline(remote_snapshot));
}

Snapshot SlotPeers::snapshot(int worker, std::span<std::byte> room, Piece& piece) const {
  if (is_remote(worker)) return remote_snapshot_of(worker, room, piece);
  const auto& publication = board_->header(worker).publication;
  for (int attempt = 0; attempt < snapshot_attempts; ++attempt) {
    const std::uint64_t newest = publication.sequence.load(std::memory_order_acquire);
    const std::uint64_t sequence = piece.sequence == 0 ? newest : piece.sequence;
    if (newest == 0 || newest > sequence + 1) return Snapshot::none;
    const auto& round = board_->round(worker, sequence);
    const std::int64_t of_round = round.load(std::memory_order_acquire);
    const bool weights = board_->has_weights(worker, sequence).load(std::memory_order_relaxed) != 0;
    const auto slot = board_->payload(worker, sequence);
    const std::size_t all =
        weights ? board_->layout().shape().weights_bytes : board_->layout().shape().vector_bytes;
    const std::size_t bytes = std::min(room.size(), all - std::min(all, piece.offset));
    const std::byte* begin = (weights ? slot.weights : slot.vector(0)) + piece.offset;
    const std::byte* from = read_optimistically(begin, room.data(), bytes);
    if (from != room.data()) std::memcpy(room.data(), from, bytes);
    if (still_holds_unwaited(publication, sequence, of_round)) {
      piece.sequence = sequence;
      piece.round = of_round;
      return weights ? Snapshot::weights : Snapshot::message;
    }
    std::this_thread::yield();
  }
  return Snapshot::none;
}

const std::byte* SlotPeers::in_place(int worker, Snapshot found, const Piece& piece) const {
  if (guarded_reads || is_remote(worker)) return nullptr;
  const MutablePayload slot = board_->payload(worker, piece.sequence);
  return (found == Snapshot::weights ? slot.weights : slot.vector(0)) + piece.offset;
}

bool SlotPeers::is_intact(int worker, const Piece& piece) const {
  return still_holds_unwaited(board_->header(worker).publication, piece.sequence, piece.round);
}

/// In the slot of the next publication, which there will not be.
std::span<std::byte> SlotPeers::room() {
  const std::uint64_t next = state_of(board_->header(rank_)).sequence + 1;
  begin_writing(board_->round(rank_, next));
  const MutablePayload slot = board_->payload(rank_, next);
  if (slot.weights != nullptr) return {slot.weights, board_->layout().shape().weights_bytes};
  return {slot.vector(0), board_->layout().shape().vector_bytes};
}

/// A network adapter that reads this memory would go on to read the pages that are given back.
void SlotPeers::trim() {
  if (remote_ && mpi::has_rdma()) return;
  const std::uint64_t newest = state_of(board_->header(rank_)).sequence;
  for (std::uint64_t next = newest + 1; next < newest + slot_count; ++next) {
    begin_writing(board_->round(rank_, next));
    give_back({board_->slot(rank_, next), board_->layout().slot_bytes()});
  }
}

void SlotPeers::show(const Reduced& reduced) {
  WorkerHeader& header = board_->header(rank_);
  store_reduced(header, reduced);
  header.note_progress();
  header.notify();
}

/// The words of one look at another host need not be of one moment: those of the second look are
/// at least as new as the stage of the first one.
Reduced SlotPeers::shown(int worker) const {
  const WorkerHeader& header = board_->header(worker);
  if (!is_remote(worker)) return reduced_of(header);
  look(worker);
  const Reduced::Stage stage = reduced_of(header).stage;
  if (stage == Reduced::Stage::none || !look(worker)) return {};
  Reduced reduced = reduced_of(header);
  reduced.stage = stage;
  return reduced;
}

bool SlotPeers::read(int worker, std::size_t offset, std::span<std::byte> to) const {
  if (is_remote(worker)) {
    return may_answer(worker) &&
           remote_->read_result(worker, offset, to, Deadline(remote_snapshot));
  }
  const MutablePayload slot =
      board_->payload(worker, state_of(board_->header(worker)).sequence + 1);
  const std::byte* from = slot.weights != nullptr ? slot.weights : slot.vector(0);
  std::memcpy(to.data(), from + offset, to.size());
  return true;
}

}  // namespace fast::exchange
