// Short messages to ranks of other hosts, beside the exchange.
#pragma once

#include <cstddef>
#include <span>

namespace fast::membership {

/// All of one length, in any order, and none is certain to arrive. Used by one thread. No call
/// blocks.
class Datagrams {
 public:
  virtual ~Datagrams() = default;
  /// False if nothing was sent: the previous one to that rank is still under way, or the rank
  /// cannot be reached any more.
  virtual bool send(int rank, std::span<const std::byte> datagram) = 0;
  /// Takes a datagram that has arrived. False if there is none.
  virtual bool receive(std::span<std::byte> datagram) = 0;
};

}  // namespace fast::membership
