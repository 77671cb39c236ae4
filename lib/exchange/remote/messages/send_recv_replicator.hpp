// Follows a worker of another host by messages: the publisher's background thread sends
// publications as they are made, the reader's receives them into its mirror.
#pragma once

#include "exchange/remote/messages/counter_stream.hpp"
#include "exchange/remote/messages/incoming.hpp"
#include "exchange/remote/messages/outgoing.hpp"
#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// Two streams in each direction, each in order: publications, and counters, which publications do
/// not delay. When one end closes, the other one sends what the first still needs and closes too.
class SendRecvReplicator : public Replicator {
 public:
  SendRecvReplicator(RemoteEdges& edges, const mpi::Messages& messages, int worker)
      : Replicator(worker),
        outgoing_(edges, messages, worker),
        incoming_(edges, messages, worker),
        counters_(edges, messages, worker) {}

  bool advance() override;
  void close() override;
  bool closed() override;

 private:
  Outgoing outgoing_;
  Incoming incoming_;
  CounterStream counters_;
};

}  // namespace fast::exchange
