// How ranks of different hosts learn of each other's records: by short messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "membership/records.hpp"

namespace fast::membership {

/// Short messages to ranks of other hosts, beside the exchange.
///
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

/// Sends copies of all records to one rank of another host at a time, drawn at random: what one
/// rank knows, all know after about log N sends of each. Does nothing on one host. Nothing blocks.
/// Used by one thread.
class Gossip {
 public:
  /// `hosts`: by rank, equal for ranks of one host. `datagrams`: of as many bytes as all records
  /// have; null on one host.
  Gossip(const RecordBoard& board, const std::vector<int>& hosts,
         std::unique_ptr<Datagrams> datagrams);

  bool has_other_hosts() const { return datagrams_ != nullptr; }

  /// True if copies have arrived, for take_over().
  bool receive();
  void take_over(const RecordBoard& board) const { board.take_over(words_, here_); }
  /// What the next send() sends.
  void note(const RecordBoard& board);
  void send();

 private:
  std::vector<bool> here_;      ///< by rank: on this host
  std::vector<int> elsewhere_;  ///< ranks of other hosts
  std::vector<std::uint64_t> words_;
  std::unique_ptr<Datagrams> datagrams_;
  std::mt19937 random_;
};

}  // namespace fast::membership
