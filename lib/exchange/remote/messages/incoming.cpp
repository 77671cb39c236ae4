#include "exchange/remote/messages/incoming.hpp"

#include <cstring>

namespace fast::exchange {

Incoming::Incoming(RemoteEdges& edges, const mpi::Messages& messages, int publisher)
    : edges_(edges),
      messages_(messages),
      publisher_(publisher),
      mirror_(*edges.board, publisher),
      message_(longest_frame_message(edges.board->layout())) {
  await_frame();
}

bool Incoming::advance() {
  switch (state_) {
    case State::awaiting_frame:
      return request_.test() && end_frame();
    case State::receiving_parts:
      return continue_parts();
    case State::ended:
      return false;
  }
  return false;
}

void Incoming::await_frame() {
  state_ = State::awaiting_frame;
  request_ = messages_.receive(publisher_, publication_tag, message_.data(), message_.size());
}

bool Incoming::end_frame() {
  Frame frame;
  std::memcpy(&frame, message_.data(), sizeof(Frame));
  merge_counters(edges_.board->header(publisher_), frame.counters);
  apply(frame);
  if (state_ == State::awaiting_frame) await_frame();
  return true;
}

void Incoming::apply(const Frame& frame) {
  switch (frame.kind) {
    case Frame::Kind::publication:
      publication_ = frame;
      travels_inline(edges_.board->layout()) ? publish_inline() : begin_parts();
      break;
    case Frame::Kind::completion:
      if (frame.is_intact) mirror_.publish(publication_.first, publication_.until);
      break;
    case Frame::Kind::extension:
      mirror_.extend(frame.until);
      break;
    case Frame::Kind::status:
      mirror_.set_status(frame.status);
      break;
    default:
      state_ = State::ended;
  }
}

void Incoming::publish_inline() {
  std::byte* slot = mirror_.begin();
  const std::byte* from = message_.data() + sizeof(Frame);
  publication_.part.for_runs(message_.size(), [&](const PayloadPart& run) {
    std::memcpy(slot + run.begin, from, run.size_bytes());
    from += run.size_bytes();
  });
  mirror_.publish(publication_.first, publication_.until);
}

/// Parts arrive in the mirror itself, without a copy.
void Incoming::begin_parts() {
  std::byte* slot = mirror_.begin(publication_.first, publication_.until);
  parts_here_ = 0;
  publication_.part.for_runs(part_bytes, [&](const PayloadPart& run) {
    parts_.push_back(
        {messages_.receive(publisher_, publication_tag, slot + run.begin, run.size_bytes()),
         run.end});
  });
  state_ = State::receiving_parts;
  if (parts_.empty()) await_frame();
}

bool Incoming::continue_parts() {
  const std::size_t before = parts_here_;
  while (parts_here_ < parts_.size() && parts_[parts_here_].request.test()) ++parts_here_;
  if (parts_here_ == before) return false;
  mirror_.arrived(parts_[parts_here_ - 1].end);
  if (parts_here_ == parts_.size()) {
    parts_.clear();
    await_frame();
  }
  return true;
}

}  // namespace fast::exchange
