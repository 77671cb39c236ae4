// How a worker reaches workers of other hosts, whose memory it cannot load from.
#pragma once

#include <cstddef>
#include <fast/core/deadline.hpp>
#include <span>

#include "exchange/peers.hpp"

namespace fast::exchange {

class RemoteAccess {
 public:
  virtual ~RemoteAccess() = default;
  virtual bool is_remote(int worker) const = 0;
  /// Updates what is known of the worker. Blocks for a round trip, at most until the deadline.
  virtual bool look(int worker, const Deadline& deadline) = 0;
  /// As Peers::snapshot. Blocks. None if it has not arrived by the deadline.
  virtual Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece,
                            const Deadline& deadline) = 0;
  /// As Results::read. Blocks.
  virtual bool read_result(int worker, std::size_t offset, std::span<std::byte> to,
                           const Deadline& deadline) = 0;
};

}  // namespace fast::exchange
