// How ranks of different hosts learn of each other's records.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/group.hpp>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "exchange/notes.hpp"

namespace fast::exchange {

/// Sends copies of all records to one rank of another host at a time, drawn at random: what one
/// rank knows, all know after about log N sends of each. Does nothing on one host. Nothing blocks.
/// Used by one thread.
class Gossip {
 public:
  /// Collective over `group`, a group without spares. `words`: of a record.
  Gossip(const Group& group, std::size_t words, const Deadline& deadline);

  bool has_other_hosts() const { return notes_ != nullptr; }
  const std::vector<bool>& here() const { return here_; }  ///< by rank: on this host

  /// The copy that is sent, and the copy that receive() has found.
  std::span<std::uint64_t> words() { return words_; }
  bool receive();
  void send();

 private:
  std::vector<bool> here_;
  std::vector<int> elsewhere_;  ///< ranks of other hosts
  std::vector<std::uint64_t> words_;
  std::unique_ptr<Notes> notes_;  ///< null on one host
  std::mt19937 random_;
};

}  // namespace fast::exchange
