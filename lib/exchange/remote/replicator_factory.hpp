// Makes a replicator for each remote worker that this one reads or is read by.
#pragma once

#include "exchange/remote/messages/failure_news.hpp"
#include "exchange/remote/remote_paths.hpp"
#include "exchange/remote/replicators.hpp"

namespace fast::exchange {

class ReplicatorFactory {
 public:
  /// Adds to `replicators`. All arguments must outlive this object.
  ReplicatorFactory(RemoteEdges& edges, const RemoteTransports& ways, Replicators& replicators,
                    FailureNews& failures)
      : edges_(edges), ways_(ways), replicators_(replicators), failures_(failures) {}

  /// Follows the remote neighbors of the current round and of the next one.
  void follow_neighbors();
  /// Follows a worker that has sent a message before this worker's plan named it. Takes the news
  /// that a worker has failed.
  void accept_unsolicited();

 private:
  void follow(int worker);

  RemoteEdges& edges_;
  const RemoteTransports& ways_;
  Replicators& replicators_;
  FailureNews& failures_;
  std::int64_t round_ = -1;  ///< the latest one whose neighbors are followed
  Clock::time_point looked_{};
};

}  // namespace fast::exchange
