// The news that a worker has failed, for all workers of other hosts, also those that it has no edge
// with.
#pragma once

#include <vector>

#include "exchange/remote/remote_paths.hpp"

namespace fast::exchange {

class FailureNews {
 public:
  /// All arguments must outlive this object.
  FailureNews(const RemoteEdges& edges, const RemoteTransports& ways)
      : edges_(edges), ways_(ways) {}

  /// Sends the news when this worker has failed, unless it failed because another one had. Does not
  /// block. True when something has moved.
  bool advance();
  /// Receives the news that has arrived from that worker.
  void take(int worker);
  /// True when the others have received the news, or have had the time for it.
  bool closed();
  bool all_received() const { return sent_.empty(); }

 private:
  void send(int worker);

  const RemoteEdges& edges_;
  const RemoteTransports& ways_;
  bool is_settled_ = false;  ///< nothing is to be sent any more
  std::vector<mpi::Request> sent_, received_;
  Deadline closing_{Seconds(0)};
};

}  // namespace fast::exchange
