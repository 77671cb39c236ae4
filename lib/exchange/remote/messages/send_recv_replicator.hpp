// Follows a worker of another host by messages: the publisher's background thread sends
// publications as they are made, the reader's receives them into its mirror.
#pragma once

#include "exchange/remote/messages/frame.hpp"
#include "exchange/remote/messages/incoming.hpp"
#include "exchange/remote/messages/outgoing.hpp"
#include "exchange/remote/replicator.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

/// The counters of two neighbors on different hosts, in both directions.
///
/// A stream of its own: publications on a slow link do not delay it.
class CounterStream {
 public:
  CounterStream(RemoteEdges& edges, const mpi::Messages& messages, int worker);
  /// True when something has moved.
  bool advance();
  void close() { closing_ = true; }
  bool closed() { return has_sent_end_ && has_received_end_ && sending_.test(); }

 private:
  bool send_changes();
  bool apply_received();
  void receive();

  RemoteEdges& edges_;
  const mpi::Messages& messages_;
  int worker_;
  MirrorWriter mirror_;  ///< for the status alone
  Frame sent_, received_;
  mpi::Request sending_, receiving_;
  bool closing_ = false, has_sent_end_ = false, has_received_end_ = false;
};

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
