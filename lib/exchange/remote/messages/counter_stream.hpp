// The counters of two neighbors on different hosts, in both directions.
#pragma once

#include "exchange/remote/messages/frame.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

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

}  // namespace fast::exchange
