#include <cstring>

#include "exchange/two_sided.hpp"
#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {
constexpr std::size_t chunks_under_way = 8;
}  // namespace

Incoming::Incoming(RemoteEdges& edges, const mpi::Messages& messages, int publisher)
    : edges_(edges),
      messages_(messages),
      publisher_(publisher),
      mirror_(*edges.board, publisher),
      buffer_(sizeof(Frame) +
              std::min(inline_bytes, SlotBoard::message_bytes(edges.board->shape()))) {
  receive_frame();
}

void Incoming::receive_frame() {
  request_ = messages_.receive(publisher_, publication_tag, buffer_.data(), buffer_.size());
}

bool Incoming::advance() {
  if (ended_) return false;
  if (in_payload_ && !receive_chunks()) return !chunks_.empty();
  if (!mpi::done(request_)) return false;
  Frame frame;
  std::memcpy(&frame, buffer_.data(), sizeof(Frame));
  take_frame(frame);
  if (!ended_ && !in_payload_) receive_frame();
  return true;
}

void Incoming::take_frame(const Frame& frame) {
  take_over(edges_.board->header(publisher_), frame.counters);
  switch (frame.kind) {
    case Frame::Kind::publication:
      begin(frame);
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

void Incoming::begin(const Frame& frame) {
  const std::size_t bytes = SlotBoard::message_bytes(edges_.board->shape());
  publication_ = frame;
  asked_ = buffer_.size() - sizeof(Frame);
  std::memcpy(mirror_.begin(), buffer_.data() + sizeof(Frame), asked_);
  in_payload_ = asked_ < bytes;
  if (!in_payload_) mirror_.publish(publication_.first, publication_.until);
}

/// Keeps some chunks under way, straight into the mirror; true when all have come and the verdict
/// has been asked for.
bool Incoming::receive_chunks() {
  const std::size_t bytes = SlotBoard::message_bytes(edges_.board->shape());
  std::byte* slot = mirror_.slot();
  std::erase_if(chunks_, [](MPI_Request& request) { return mpi::done(request); });
  while (chunks_.size() < chunks_under_way && asked_ < bytes) {
    const std::size_t size = std::min(message_chunk_bytes, bytes - asked_);
    chunks_.push_back(messages_.receive(publisher_, publication_tag, slot + asked_, size));
    asked_ += size;
  }
  if (!chunks_.empty()) return false;
  in_payload_ = false;
  receive_frame();
  return true;
}

}  // namespace fast::exchange
