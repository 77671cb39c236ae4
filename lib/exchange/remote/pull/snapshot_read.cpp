#include "exchange/remote/pull/snapshot_read.hpp"

#include <algorithm>

namespace fast::exchange {

SnapshotRead::SnapshotRead(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker,
                           const Piece& piece, std::size_t most_bytes, Of what)
    : RemoteTask(worker),
      piece_(piece),
      what_(what),
      layout_(edges.board->layout()),
      mirror_(*edges.board, worker),
      header_(window, worker),
      copy_(window, worker, edges.throttle),
      room_(std::min(most_bytes,
                     std::max(layout_.shape().vector_bytes, layout_.shape().weights_bytes))) {}

bool SnapshotRead::advance(bool is_followed) {
  switch (state_) {
    case State::idle:
      return begin_look();
    case State::looking:
      return header_.test() && end_look(is_followed);
    case State::copying:
      return continue_copy();
    case State::checking:
      return header_.test() && end_check();
    case State::ended:
      return false;
  }
  return false;
}

bool SnapshotRead::released() {
  const bool header_is_done = !header_.request().is_under_way() || header_.test();
  return copy_.abandon() && header_is_done;
}

bool SnapshotRead::begin_look() {
  header_.begin();
  state_ = State::looking;
  return true;
}

bool SnapshotRead::end_look(bool is_followed) {
  mirror_.merge(header_.header());
  if (const auto target = target_in(header_.header())) {
    begin_copy(*target);
    state_ = State::copying;
    return true;
  }
  if (!is_followed) mirror_.set_status(status_of(header_.header()));
  if (piece_.sequence != 0) attempts_ = most_attempts;  // that publication does not come back
  return retry();
}

bool SnapshotRead::continue_copy() {
  const bool was_under_way = copy_.is_under_way();
  const std::size_t before = copy_.arrived_bytes();
  copy_.advance();
  if (copy_.arrived_bytes() > before) mirror_.note_part();
  if (copy_.done()) {
    header_.begin();
    state_ = State::checking;
  }
  return was_under_way;
}

bool SnapshotRead::end_check() {
  mirror_.merge(header_.header());
  if (what_ == Of::weights && !is_intact(target_, header_.header(), 1)) return retry();
  result_ = found_;
  state_ = State::ended;
  return true;
}

bool SnapshotRead::retry() {
  state_ = ++attempts_ < most_attempts ? State::idle : State::ended;
  return true;
}

/// A result is where the next publication would be.
std::optional<PullTarget> SnapshotRead::target_in(const WorkerHeader& seen) const {
  const auto newest = newest_publication(seen);
  if (!newest) return std::nullopt;
  if (what_ == Of::result) return PullTarget{newest->sequence + 1, 0, 0, std::nullopt};
  if (piece_.sequence == 0 || piece_.sequence == newest->sequence) return newest;
  const std::uint64_t slot = piece_.sequence % slot_count;
  const std::int64_t first = seen.publication.rounds[slot].load(std::memory_order_relaxed);
  if (newest->sequence > piece_.sequence + 1 || first == being_written) return std::nullopt;
  return PullTarget{piece_.sequence, first, first, std::nullopt};
}

void SnapshotRead::begin_copy(const PullTarget& target) {
  target_ = target;
  const auto& has_weights = header_.header().publication.has_weights[target.sequence % slot_count];
  const bool weights = what_ == Of::result ? layout_.shape().weights_bytes > 0
                                           : has_weights.load(std::memory_order_relaxed) != 0;
  found_ = weights ? Snapshot::weights : Snapshot::message;
  const std::size_t all = weights ? layout_.shape().weights_bytes : layout_.shape().vector_bytes;
  const std::size_t in_slot = weights ? layout_.weights_offset() : layout_.data_offset();
  size_bytes_ = std::min(room_.size(), all - std::min(all, piece_.offset));
  copy_.begin(layout_.slot_offset(worker(), target.sequence) + in_slot + piece_.offset,
              room_.data(), size_bytes_);
}

}  // namespace fast::exchange
