#include "exchange/remote/two_sided.hpp"

#include "mpi/impl.hpp"

namespace fast::exchange {

CounterStream::CounterStream(RemoteEdges& edges, const mpi::Messages& messages, int worker)
    : edges_(edges), messages_(messages), worker_(worker), mirror_(*edges.board, worker) {
  receive();
}

void CounterStream::receive() {
  receiving_ = messages_.receive(worker_, counter_tag, &received_, sizeof(Frame));
}

bool CounterStream::advance() {
  bool moved = send_news();
  if (ended_ || !mpi::done(receiving_)) return moved;
  moved |= take_over(edges_.board->header(worker_), received_.counters);
  if (received_.status == WorkerStatus::failed) {
    mirror_.set_status(received_.status);
    moved = true;
  }
  ended_ = received_.kind == Frame::Kind::goodbye;
  if (!ended_) receive();
  return moved;
}

/// One message at a time, so that news of the meantime travel together.
bool CounterStream::send_news() {
  if (said_goodbye_ || !mpi::done(sending_)) return false;
  const WorkerHeader& own = edges_.board->header(edges_.rank);
  const WorkerStatus status = status_of(own);
  const auto counters = PeerCounters::of(own);
  const bool fails = status == WorkerStatus::failed && sent_.status != status;
  const bool leaves = closing_ && !fails;
  if (!leaves && !fails && counters == sent_.counters) return false;
  said_goodbye_ = leaves;
  sent_ = {};
  sent_.kind = leaves ? Frame::Kind::goodbye : Frame::Kind::counters;
  sent_.status = status;
  sent_.counters = counters;
  sending_ = messages_.send_matched(worker_, counter_tag, &sent_, sizeof(Frame));
  return true;
}

bool CounterStream::closed() { return said_goodbye_ && ended_ && mpi::done(sending_); }

bool TwoSided::advance() {
  bool moved = incoming_.advance();
  moved |= outgoing_.advance();
  moved |= counters_.advance();
  if (incoming_.closed()) close();
  return moved;
}

void TwoSided::close() {
  outgoing_.close();
  counters_.close();
}

bool TwoSided::closed() { return outgoing_.closed() && incoming_.closed() && counters_.closed(); }

}  // namespace fast::exchange
