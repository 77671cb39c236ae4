#include <cstring>

#include "exchange/optimistic.hpp"
#include "exchange/two_sided.hpp"
#include "mpi/impl.hpp"

namespace fast::exchange {
Outgoing::Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader)
    : edges_(edges),
      messages_(messages),
      reader_(reader),
      buffer_(sizeof(Frame) +
              std::min(inline_bytes, SlotBoard::message_bytes(edges.board->shape()))) {}

bool Outgoing::advance() {
  if (said_goodbye_) return false;
  if (in_payload_) return send_chunks();
  if (!mpi::done(request_) || !edges_.throttle.open()) return false;
  return choose() || send_status();
}

bool Outgoing::closed() {
  if (!said_goodbye_ || !mpi::done(request_)) return false;
  return std::all_of(chunks_.begin(), chunks_.end(),
                     [](Chunk& chunk) { return mpi::done(chunk.request); });
}

/// True when the reader reads this worker in any of the rounds.
bool Outgoing::due(std::int64_t from, std::int64_t to) const {
  return edges_.first_read_by(reader_, from, to).has_value();
}

/// Begins the oldest publication that the reader still needs, or the newest when any will do.
bool Outgoing::choose() {
  const WorkerHeader& own = edges_.board->header(edges_.rank);
  const WorkerHeader& reader = edges_.board->header(reader_);
  const std::uint64_t newest = own.publication.sequence.load(std::memory_order_acquire);
  if (newest == 0 || status_of(reader) == WorkerStatus::finished) return false;
  if (extend()) return true;
  const std::int64_t now = reader.reading.consumed.load(std::memory_order_acquire);
  if (!edges_.exact()) {
    const bool last = status_of(own) == WorkerStatus::finished;
    return newest > newest_sent_ && (last || due(now, now + 1)) && take(newest);
  }
  std::uint64_t sequence = newest < slot_count ? 1 : newest - slot_count + 1;
  for (sequence = std::max(sequence, newest_sent_ + 1); sequence <= newest; ++sequence) {
    const std::int64_t first =
        own.publication.rounds[sequence % slot_count].load(std::memory_order_acquire);
    const std::int64_t until =
        own.publication.until[sequence % slot_count].load(std::memory_order_acquire);
    if (first != being_written && due(std::max(first, now), until)) return take(sequence);
  }
  return false;
}

/// Says that the last publication sent has become further rounds'.
bool Outgoing::extend() {
  if (newest_sent_ == 0) return false;
  const auto& publication = edges_.board->header(edges_.rank).publication;
  const std::uint64_t slot = newest_sent_ % slot_count;
  const std::int64_t until = publication.until[slot].load(std::memory_order_acquire);
  const std::int64_t first = publication.rounds[slot].load(std::memory_order_acquire);
  if (first != first_ || until <= sent_until_) return false;
  if (edges_.exact() && !due(sent_until_ + 1, until)) return false;
  sent_until_ = until;
  Frame frame;
  frame.kind = Frame::Kind::extension;
  frame.until = until;
  send(frame);
  return true;
}

/// Once all that is owed has been sent: a changed status, then, when closing, the end.
bool Outgoing::send_status() {
  const WorkerStatus now = status_of(edges_.board->header(edges_.rank));
  Frame frame;
  if (now != status_) {
    if (choose()) return true;  // published before the status changed, seen only now
    status_ = now;
    frame.kind = Frame::Kind::status;
  } else if (closing_) {
    said_goodbye_ = true;
    frame.kind = Frame::Kind::goodbye;
  } else {
    return false;
  }
  send(frame);
  return true;
}

bool Outgoing::take(std::uint64_t sequence) {
  const std::uint64_t slot = sequence % slot_count;
  const auto& publication = edges_.board->header(edges_.rank).publication;
  first_ = publication.rounds[slot].load(std::memory_order_acquire);
  until_ = publication.until[slot].load(std::memory_order_acquire);
  sequence_ = sequence;
  if (first_ == being_written) return false;
  const std::size_t bytes = SlotBoard::message_bytes(edges_.board->shape());
  sent_ = buffer_.size() - sizeof(Frame);
  copy(0, buffer_.data() + sizeof(Frame), sent_);
  if (!still_stands()) return false;
  Frame frame;
  frame.kind = Frame::Kind::publication;
  frame.first = first_;
  frame.until = until_;
  send(frame, sent_);
  in_payload_ = sent_ < bytes;
  if (!in_payload_) {
    newest_sent_ = sequence_;
    sent_until_ = until_;
  }
  return true;
}

/// Keeps some chunks under way, each from a copy of its own: a slot may be written anew while MPI
/// still reads what it was given.
bool Outgoing::send_chunks() {
  const std::size_t bytes = SlotBoard::message_bytes(edges_.board->shape());
  for (Chunk& chunk : chunks_) {
    if (sent_ == bytes || !edges_.throttle.open()) break;
    if (!mpi::done(chunk.request)) continue;
    const std::size_t size = std::min(message_chunk_bytes, bytes - sent_);
    chunk.bytes.resize(message_chunk_bytes);
    copy(sent_, chunk.bytes.data(), size);
    chunk.request = messages_.send(reader_, publication_tag, chunk.bytes.data(), size);
    edges_.throttle.spend(size);
    sent_ += size;
  }
  if (sent_ < bytes || !mpi::done(request_)) return true;
  in_payload_ = false;
  Frame frame;
  frame.kind = Frame::Kind::verdict;
  frame.stands = still_stands();
  if (frame.stands) {
    newest_sent_ = sequence_;
    sent_until_ = until_;
  }
  send(frame);
  return true;
}

/// True when what was copied of the slot up to now is one publication.
bool Outgoing::still_stands() const {
  order_loads();
  return edges_.board->round(edges_.rank, sequence_).load(std::memory_order_acquire) == first_;
}

void Outgoing::copy(std::size_t offset, std::byte* to, std::size_t bytes) const {
  const std::byte* slot = edges_.board->slot(edges_.rank, sequence_) + offset;
  const std::byte* from = read_optimistically(slot, to, bytes);
  if (from != to) std::memcpy(to, from, bytes);
}

void Outgoing::send(Frame frame, std::size_t payload_bytes) {
  const WorkerHeader& own = edges_.board->header(edges_.rank);
  frame.status = status_;
  frame.counters = PeerCounters::of(own);
  std::memcpy(buffer_.data(), &frame, sizeof(Frame));
  edges_.throttle.spend(payload_bytes);
  request_ = messages_.send_matched(reader_, publication_tag, buffer_.data(),
                                    sizeof(Frame) + payload_bytes);
}

}  // namespace fast::exchange
