#include "exchange/remote/messages/send_recv_replicator.hpp"

namespace fast::exchange {

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
