#include "exchange/remote/messages/outgoing.hpp"

#include <algorithm>

namespace fast::exchange {

std::uint64_t SendPlan::newest() const {
  return edges_.board->header(edges_.rank).publication.sequence.load(std::memory_order_acquire);
}

bool SendPlan::reader_has_finished() const {
  return has_ended(status_of(edges_.board->header(reader_)));
}

/// True when the reader reads this worker in any of the rounds.
bool SendPlan::is_due(std::int64_t from, std::int64_t to) const {
  return edges_.first_read_by(reader_, from, to).has_value();
}

OwnPublication SendPlan::load(std::uint64_t sequence) const {
  const SlotBoard& board = *edges_.board;
  const std::int64_t first = board.round(edges_.rank, sequence).load(std::memory_order_acquire);
  const std::int64_t until = board.until(edges_.rank, sequence).load(std::memory_order_acquire);
  return {sequence, first, until};
}

std::optional<OwnPublication> SendPlan::if_intact(const OwnPublication& publication) const {
  const auto& [sequence, first, until] = publication;
  if (!edges_.board->still_holds(edges_.rank, sequence, first)) return std::nullopt;
  return publication;
}

std::optional<OwnPublication> SendPlan::next() const {
  const std::uint64_t newest = this->newest();
  if (newest == 0 || reader_has_finished()) return std::nullopt;
  const std::int64_t now =
      edges_.board->header(reader_).reading.consumed.load(std::memory_order_acquire);
  if (!edges_.exact()) {
    const bool is_last = status_of(edges_.board->header(edges_.rank)) == WorkerStatus::finished;
    const bool wanted = newest > sent_.sequence && (is_last || is_due(now, now + 1));
    return wanted ? if_intact(load(newest)) : std::nullopt;
  }
  const std::uint64_t oldest = newest < slot_count ? 1 : newest - slot_count + 1;
  for (auto sequence = std::max(oldest, sent_.sequence + 1); sequence <= newest; ++sequence) {
    const OwnPublication publication = load(sequence);
    if (publication.first == being_written) continue;
    if (is_due(std::max(publication.first, now), publication.until)) return if_intact(publication);
  }
  return reader_is_behind(now) ? if_intact(load(newest)) : std::nullopt;
}

/// True when the reader waits for a round that this worker has skipped: this worker suspected the
/// reader, or was suspended itself. A later publication shows that to the reader.
bool SendPlan::reader_is_behind(std::int64_t round) const {
  const bool was_sent = sent_.sequence > 0 && sent_.until >= round;
  return !was_sent && newest() > sent_.sequence && is_due(round, round) &&
         edges_.board->has_skipped(edges_.rank, round);
}

std::optional<std::int64_t> SendPlan::extension() const {
  if (sent_.sequence == 0 || reader_has_finished()) return std::nullopt;
  const auto& publication = edges_.board->header(edges_.rank).publication;
  const std::uint64_t slot = sent_.sequence % slot_count;
  const std::int64_t until = publication.until[slot].load(std::memory_order_acquire);
  const std::int64_t first = publication.rounds[slot].load(std::memory_order_acquire);
  if (first != sent_.first || until <= sent_.until) return std::nullopt;
  if (edges_.exact() && !is_due(sent_.until + 1, until)) return std::nullopt;
  return until;
}

Outgoing::Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader)
    : edges_(edges),
      plan_(edges, reader),
      frames_(edges, messages, reader),
      payload_(messages, reader, edges.throttle) {}

bool Outgoing::advance() {
  switch (state_) {
    case State::ready:
      if (!frames_.is_ready() || !edges_.throttle.open()) return false;
      return send_next() || send_status();
    case State::sending:
      return send_parts();
    case State::draining:
      return drain();
    case State::ended:
      return false;
  }
  return false;
}

Frame Outgoing::frame(Frame::Kind kind) const {
  Frame frame;
  frame.kind = kind;
  frame.status = status_;
  return frame;
}

bool Outgoing::send_next() {
  if (send_extension()) return true;
  const auto publication = plan_.next();
  return publication && send_publication(*publication);
}

bool Outgoing::send_extension() {
  const auto until = plan_.extension();
  if (!until) return false;
  Frame frame = this->frame(Frame::Kind::extension);
  frame.until = *until;
  frames_.send(frame);
  plan_.extended(*until);
  return true;
}

bool Outgoing::send_publication(const OwnPublication& publication) {
  publication_ = publication;
  auto buffer = edges_.send_buffers.buffer(publication.sequence, publication.first);
  Frame frame = this->frame(Frame::Kind::publication);
  frame.first = publication.first;
  frame.until = publication.until;
  if (travels_inline(edges_.board->layout())) return send_inline(frame, *buffer);
  begin_payload(frame, std::move(buffer));
  return true;
}

bool Outgoing::send_inline(const Frame& frame, SendBuffer& buffer) {
  const std::byte* payload = buffer.first(buffer.size());
  if (!buffer.is_intact()) return false;
  frames_.send(frame, {payload, buffer.size()});
  plan_.sent(publication_);
  return true;
}

void Outgoing::begin_payload(const Frame& frame, std::shared_ptr<SendBuffer> buffer) {
  frames_.send(frame);
  payload_.begin(std::move(buffer));
  state_ = State::sending;
}

bool Outgoing::send_parts() {
  bool moved = payload_.start_parts();
  if (payload_.all_started() && frames_.is_ready()) {
    send_completion();
    state_ = State::draining;
    moved = true;
  }
  return drain() || moved;
}

void Outgoing::send_completion() {
  Frame frame = this->frame(Frame::Kind::completion);
  frame.is_intact = payload_.buffer().is_intact();
  if (frame.is_intact) plan_.sent(publication_);
  frames_.send(frame);
}

bool Outgoing::drain() {
  const bool moved = payload_.remove_done();
  if (state_ == State::draining && payload_.release()) state_ = State::ready;
  return moved;
}

/// A changed status, or the end of the stream, after all publications that the reader needs.
bool Outgoing::send_status() {
  const WorkerStatus now = status_of(edges_.board->header(edges_.rank));
  if (now == status_) {
    if (closing_) send_end();
    return closing_;
  }
  if (send_next()) return true;  // published before the status changed
  status_ = now;
  frames_.send(frame(Frame::Kind::status));
  return true;
}

void Outgoing::send_end() {
  frames_.send(frame(Frame::Kind::end));
  state_ = State::ended;
}

}  // namespace fast::exchange
