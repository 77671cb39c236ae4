// A copy of one of this worker's publications, for readers on other hosts that are too slow for its
// slots. It stays for twice as long as the slowest of their reads takes. So a read that begins when
// the copy is new finds it whole.
#pragma once

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// Used by the background thread of remote edges.
class KeptCopy {
 public:
  /// `edges` outlives this.
  explicit KeptCopy(const RemoteEdges& edges) : edges_(edges) {}

  /// Makes a copy of the newest publication if a reader needs one and the last copy has been there
  /// long enough. True when it has made one.
  bool advance(Clock::time_point now);

 private:
  Seconds slowest_read() const;
  bool copy_newest();

  const RemoteEdges& edges_;
  Clock::time_point until_{};
};

}  // namespace fast::exchange
