#include "exchange/remote/messages/outgoing.hpp"

namespace fast::exchange {

Outgoing::Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader)
    : edges_(edges),
      reader_(reader),
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
  const MessagePart part = edges_.part_to(reader_, publication.first, publication.until);
  auto buffer = edges_.send_buffers.buffer(publication.sequence, publication.first, part);
  Frame frame = this->frame(Frame::Kind::publication);
  frame.first = publication.first;
  frame.until = publication.until;
  frame.part = part;
  if (travels_inline(edges_.board->layout())) return send_inline(frame, *buffer);
  begin_payload(frame, std::move(buffer));
  return true;
}

bool Outgoing::send_inline(const Frame& frame, SendBuffer& buffer) {
  const std::byte* part = buffer.up_to(frame.part.size_bytes());
  if (!buffer.is_intact()) return false;
  frames_.send(frame, {part, frame.part.size_bytes()});
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
