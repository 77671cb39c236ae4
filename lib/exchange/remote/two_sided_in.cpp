#include <cstring>

#include "exchange/remote/two_sided.hpp"
#include "mpi/impl.hpp"

namespace fast::exchange {

Incoming::Incoming(RemoteEdges& edges, const mpi::Messages& messages, int publisher)
    : edges_(edges),
      messages_(messages),
      publisher_(publisher),
      mirror_(*edges.board, publisher),
      buffer_(longest_frame_message(edges.board->shape())) {
  receive_frame();
}

void Incoming::receive_frame() {
  request_ = messages_.receive(publisher_, publication_tag, buffer_.data(), buffer_.size());
}

bool Incoming::advance() {
  if (ended_) return false;
  if (!parts_.empty()) return follow_parts();
  if (!mpi::done(request_)) return false;
  Frame frame;
  std::memcpy(&frame, buffer_.data(), sizeof(Frame));
  take_frame(frame);
  if (!ended_ && parts_.empty()) receive_frame();
  return true;
}

bool Incoming::follow_parts() {
  const std::size_t before = parts_here_;
  while (parts_here_ < parts_.size() && mpi::done(parts_[parts_here_])) ++parts_here_;
  if (parts_here_ == before) return false;
  mirror_.arrived(parts_here_ * part_bytes);
  if (parts_here_ == parts_.size()) {
    parts_.clear();
    receive_frame();
  }
  return true;
}

void Incoming::take_frame(const Frame& frame) {
  take_over(edges_.board->header(publisher_), frame.counters);
  switch (frame.kind) {
    case Frame::Kind::publication:
      take_payload(frame);
      break;
    case Frame::Kind::verdict:
      if (frame.stands) mirror_.publish(publication_.first, publication_.until);
      break;
    case Frame::Kind::extension:
      mirror_.extend(frame.until);
      break;
    case Frame::Kind::status:
      mirror_.set_status(frame.status);
      break;
    default:
      ended_ = true;
  }
}

/// Out of the frame's message, or, in parts, straight into the mirror.
void Incoming::take_payload(const Frame& frame) {
  const std::size_t bytes = SlotBoard::message_bytes(edges_.board->shape());
  if (travels_inline(edges_.board->shape())) {
    std::memcpy(mirror_.begin(), buffer_.data() + sizeof(Frame), bytes);
    mirror_.publish(frame.first, frame.until);
    return;
  }
  std::byte* slot = mirror_.begin(frame.first, frame.until);
  publication_ = frame;
  parts_here_ = 0;
  for (std::size_t offset = 0; offset < bytes; offset += part_bytes) {
    const std::size_t size = std::min(part_bytes, bytes - offset);
    parts_.push_back(messages_.receive(publisher_, publication_tag, slot + offset, size));
  }
}

}  // namespace fast::exchange
