// A copy of one of this worker's publications, for readers on other hosts that are too slow for its
// slots. It stays for twice as long as the slowest of their reads takes. So a read that begins when
// the copy is new finds it whole.
#pragma once

#include <functional>
#include <utility>

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// Used by the background thread of remote edges.
class KeptCopy {
 public:
  /// Readers for which `is_remote` is false have no need of copies. `edges` outlives this.
  KeptCopy(const RemoteEdges& edges, std::function<bool(int worker)> is_remote)
      : edges_(edges), is_remote_(std::move(is_remote)) {}

  /// Makes a copy of the newest publication if a reader needs one and the last copy has been there
  /// long enough. True when it has made one.
  bool advance(Clock::time_point now);

 private:
  Seconds slowest_read() const;
  bool copy_newest();

  const RemoteEdges& edges_;
  std::function<bool(int)> is_remote_;
  Clock::time_point copied_at_{}, looked_at_{};
};

}  // namespace fast::exchange
