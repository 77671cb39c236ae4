#include "exchange/remote/messages/send_recv_replicator.hpp"

namespace fast::exchange {

CounterStream::CounterStream(RemoteEdges& edges, const mpi::Messages& messages, int worker)
    : edges_(edges), messages_(messages), worker_(worker), mirror_(*edges.board, worker) {
  receive();
}

void CounterStream::receive() {
  receiving_ = messages_.receive(worker_, counter_tag, &received_, sizeof(Frame));
}

bool CounterStream::advance() {
  const bool sent = send_changes();
  if (has_received_end_ || !receiving_.test()) return sent;
  return apply_received() || sent;
}

bool CounterStream::apply_received() {
  bool moved = merge_counters(edges_.board->header(worker_), received_.counters);
  if (received_.status == WorkerStatus::failed) moved |= mirror_.set_status(received_.status);
  has_received_end_ = received_.kind == Frame::Kind::end;
  if (!has_received_end_) receive();
  return moved;
}

/// One message at a time: it has all changes since the one before.
bool CounterStream::send_changes() {
  if (has_sent_end_ || !sending_.test()) return false;
  const WorkerHeader& own = edges_.board->header(edges_.rank);
  const WorkerStatus status = status_of(own);
  const auto counters = PeerCounters::of(own);
  const bool fails = status == WorkerStatus::failed && sent_.status != status;
  const bool ends = closing_ && !fails;
  if (!ends && !fails && counters == sent_.counters) return false;
  has_sent_end_ = ends;
  sent_ = {};
  sent_.kind = ends ? Frame::Kind::end : Frame::Kind::counters;
  sent_.status = status;
  sent_.counters = counters;
  sending_ = messages_.send(worker_, counter_tag, &sent_, sizeof(Frame));
  return true;
}

bool SendRecvReplicator::advance() {
  bool moved = incoming_.advance();
  moved |= outgoing_.advance();
  moved |= counters_.advance();
  if (incoming_.closed()) close();
  return moved;
}

void SendRecvReplicator::close() {
  outgoing_.close();
  counters_.close();
}

bool SendRecvReplicator::closed() {
  return outgoing_.closed() && incoming_.closed() && counters_.closed();
}

}  // namespace fast::exchange
