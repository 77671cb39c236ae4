#include "exchange/remote/pull/snapshot_read.hpp"

#include <algorithm>

namespace fast::exchange {

SnapshotRead::SnapshotRead(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker)
    : RemoteTask(worker),
      layout_(edges.board->layout()),
      mirror_(*edges.board, worker),
      header_(window, worker),
      copy_(window, worker, edges.throttle),
      room_(std::max(layout_.shape().vector_bytes, layout_.shape().weights_bytes)) {}

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
  const bool header_is_done = !header_.is_under_way() || header_.test();
  return copy_.abandon() && header_is_done;
}

bool SnapshotRead::begin_look() {
  header_.begin();
  state_ = State::looking;
  return true;
}

bool SnapshotRead::end_look(bool is_followed) {
  mirror_.merge(header_.header());
  if (const auto target = newest_publication(header_.header())) {
    begin_copy(*target);
    state_ = State::copying;
    return true;
  }
  if (!is_followed) mirror_.set_status(status_of(header_.header()));
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
  if (!is_intact(target_, header_.header(), 1)) return retry();
  result_ = found_;
  state_ = State::ended;
  return true;
}

bool SnapshotRead::retry() {
  state_ = ++attempts_ < most_attempts ? State::idle : State::ended;
  return true;
}

void SnapshotRead::begin_copy(const PullTarget& target) {
  target_ = target;
  const auto& has_weights = header_.header().publication.has_weights[target.sequence % slot_count];
  const bool weights = has_weights.load(std::memory_order_relaxed) != 0;
  found_ = weights ? Snapshot::weights : Snapshot::message;
  size_bytes_ = weights ? layout_.shape().weights_bytes : layout_.shape().vector_bytes;
  const std::size_t in_slot = weights ? layout_.weights_offset() : layout_.data_offset();
  copy_.begin(layout_.slot_offset(target.sequence) + in_slot, room_.data(), size_bytes_);
}

}  // namespace fast::exchange
