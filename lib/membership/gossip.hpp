// How ranks of different hosts learn of each other's records.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "membership/datagrams.hpp"
#include "membership/record_board.hpp"

namespace fast::membership {

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
