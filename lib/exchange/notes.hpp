// Short messages to workers of other hosts, beside the exchange.
#pragma once

#include <cstddef>
#include <span>

namespace fast {

/// Datagrams: all of one length, in any order, and none is certain to arrive. Used by one thread.
/// No call blocks.
class Notes {
 public:
  virtual ~Notes() = default;
  /// False if nothing was sent: the previous note to that worker is still under way, or the worker
  /// cannot be reached any more.
  virtual bool send(int worker, std::span<const std::byte> note) = 0;
  /// Takes a note that has arrived. False if there is none.
  virtual bool receive(std::span<std::byte> note) = 0;
};

}  // namespace fast
