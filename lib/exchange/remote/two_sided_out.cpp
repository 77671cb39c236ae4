#include <cstring>

#include "exchange/remote/two_sided.hpp"
#include "mpi/impl.hpp"

namespace fast::exchange {
Outgoing::Outgoing(RemoteEdges& edges, const mpi::Messages& messages, int reader)
    : edges_(edges), messages_(messages), reader_(reader) {
  for (Message& message : messages_under_way_)
    message.bytes.resize(longest_frame_message(edges.board->shape()));
}

bool Outgoing::advance() {
  if (said_goodbye_) return false;
  if (buffer_) return send_parts();
  if (!may_send() || !edges_.throttle.open()) return false;
  return choose() || send_status();
}

bool Outgoing::closed() {
  return said_goodbye_ && std::all_of(messages_under_way_.begin(), messages_under_way_.end(),
                                      [](Message& message) { return mpi::done(message.request); });
}

bool Outgoing::may_send() { return mpi::done(messages_under_way_[next_].request); }

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
  return leaves_behind(now) && take(newest);
}

/// True when the reader waits for a round that this worker has gone past without it, having taken
/// it for dead or come back itself: a later publication tells.
bool Outgoing::leaves_behind(std::int64_t round) const {
  const WorkerHeader& own = edges_.board->header(edges_.rank);
  const std::uint64_t newest = own.publication.sequence.load(std::memory_order_acquire);
  const bool was_sent = newest_sent_ > 0 && sent_until_ >= round;
  return !was_sent && newest > newest_sent_ && due(round, round) &&
         edges_.board->has_gone_past(edges_.rank, round);
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
  const SlotBoard& board = *edges_.board;
  first_ = board.round(edges_.rank, sequence).load(std::memory_order_acquire);
  until_ = board.until(edges_.rank, sequence).load(std::memory_order_acquire);
  if (!board.still_holds(edges_.rank, sequence, first_)) return false;
  const auto buffer = edges_.send_buffers.buffer(sequence, first_);
  Frame frame;
  frame.kind = Frame::Kind::publication;
  frame.first = first_;
  frame.until = until_;
  if (travels_inline(board.shape())) {
    const std::byte* payload = buffer->first(buffer->size());
    if (!buffer->stands()) return false;
    send(frame, payload, buffer->size());
    newest_sent_ = sequence;
    sent_until_ = until_;
  } else {
    send(frame);
    buffer_ = buffer;
    sent_ = 0;
    judged_ = false;
  }
  return true;
}

/// Gives MPI all parts without asking whether the others have come: the answer would wait behind
/// what is under way the other way. As far as the cap allows.
bool Outgoing::send_parts() {
  bool moved = false;
  for (int i = 0; i < parts_at_once && sent_ < buffer_->size() && edges_.throttle.open(); ++i) {
    const std::size_t size = std::min(part_bytes, buffer_->size() - sent_);
    const std::byte* part = buffer_->first(sent_ + size) + sent_;
    parts_.push_back(messages_.send(reader_, publication_tag, part, size));
    edges_.throttle.spend(size);
    sent_ += size;
    moved = true;
  }
  if (sent_ == buffer_->size() && !judged_ && may_send()) {
    send_verdict();
    moved = true;
  }
  moved |= std::erase_if(parts_, [](MPI_Request& request) { return mpi::done(request); }) > 0;
  if (judged_ && parts_.empty()) buffer_.reset();
  return moved;
}

void Outgoing::send_verdict() {
  judged_ = true;
  Frame frame;
  frame.kind = Frame::Kind::verdict;
  frame.stands = buffer_->stands();
  if (frame.stands) {
    newest_sent_ = buffer_->sequence();
    sent_until_ = until_;
  }
  send(frame);
}

void Outgoing::send(Frame frame, const std::byte* payload, std::size_t payload_bytes) {
  Message& message = messages_under_way_[next_];
  next_ = (next_ + 1) % frames_under_way;
  frame.status = status_;
  frame.counters = PeerCounters::of(edges_.board->header(edges_.rank));
  std::memcpy(message.bytes.data(), &frame, sizeof(Frame));
  if (payload_bytes > 0) std::memcpy(message.bytes.data() + sizeof(Frame), payload, payload_bytes);
  edges_.throttle.spend(payload_bytes);
  message.request = messages_.send_matched(reader_, publication_tag, message.bytes.data(),
                                           sizeof(Frame) + payload_bytes);
}

}  // namespace fast::exchange
