// How a worker reaches those whose memory it cannot load from.
#pragma once

#include <cstddef>
#include <fast/core/deadline.hpp>
#include <fast/exchange/peers.hpp>
#include <span>

namespace fast::exchange {

class RemoteAccess {
 public:
  virtual ~RemoteAccess() = default;
  virtual bool is_remote(int worker) const = 0;
  /// Brings what is known of the worker up to date. Blocks for a round trip, until the deadline at
  /// most.
  virtual bool look(int worker, const Deadline& deadline) = 0;
  /// As Peers::snapshot. Blocks; none when it was not to be had by the deadline.
  virtual Snapshot snapshot(int worker, std::span<std::byte> room, const Deadline& deadline) = 0;
};

}  // namespace fast::exchange
