#include "exchange/remote/pull/rma_replicator.hpp"

#include <utility>

namespace fast::exchange {

RmaReplicator::RmaReplicator(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker)
    : Replicator(worker),
      edges_(edges),
      mirror_(*edges.board, worker),
      header_(window, worker),
      copy_(window, worker, edges.throttle),
      plan_(edges, worker) {}

bool RmaReplicator::advance() {
  if (closing_) return false;
  switch (state_) {
    case State::idle:
      return begin_look();
    case State::looking:
      return header_.test() && end_look();
    case State::copying:
      return continue_copy();
    case State::checking:
      return header_.test() && end_check();
  }
  return false;
}

bool RmaReplicator::closed() {
  const bool header_is_done = !header_.request().is_under_way() || header_.test();
  return copy_.abandon() && header_is_done;
}

bool RmaReplicator::begin_look() {
  header_.begin();
  state_ = State::looking;
  return false;
}

bool RmaReplicator::end_look() {
  const bool moved = mirror_.merge(header_.header());
  if (const auto target = plan_.choose(header_.header())) {
    begin_copy(*target);
    state_ = State::copying;
    return true;
  }
  state_ = State::idle;
  return mirror_status() || moved;
}

bool RmaReplicator::continue_copy() {
  const bool was_under_way = copy_.is_under_way();
  const std::size_t before = copy_.arrived_bytes();
  copy_.advance();
  if (copy_.arrived_bytes() > before) mirror_.arrived(copy_.arrived_bytes());
  if (copy_.done()) {
    header_.begin();
    state_ = State::checking;
  }
  return was_under_way;
}

bool RmaReplicator::end_check() {
  mirror_.merge(header_.header());
  const PullPlan::Outcome outcome = plan_.check(target_, header_.header());
  plan_.note(target_, outcome, Clock::now() - began_);
  if (outcome == PullPlan::Outcome::valid) {
    mirror_.publish(target_.skipped ? target_.first : target_.last, target_.last);
  }
  state_ = State::idle;
  return true;
}

void RmaReplicator::begin_copy(const PullTarget& target) {
  target_ = target;
  began_ = Clock::now();
  const SlotLayout& layout = edges_.board->layout();
  // Readers may follow the arrival of exactly the round that they wait for.
  const bool may_be_followed = edges_.exact() && !target.skipped;
  std::byte* to = may_be_followed ? mirror_.begin(target.last, target.last) : mirror_.begin();
  const std::size_t from =
      target.kept ? layout.kept_offset(worker()) : layout.slot_offset(worker(), target.sequence);
  copy_.begin(from, to, edges_.part_from(worker(), target.last, target.last));
}

/// A status is mirrored after the worker's last payload. The cache lines of a header need not be of
/// one moment: if this look found nothing to copy, that holds for the status of the previous look.
bool RmaReplicator::mirror_status() {
  const WorkerStatus status = std::exchange(status_, status_of(header_.header()));
  if (status != WorkerStatus::failed && plan_.has_more(header_.header())) return false;
  return mirror_.set_status(status);
}

}  // namespace fast::exchange
