// The records of ranks, in the test's hand.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "membership/coordinator.hpp"
#include "membership/rank_map.hpp"

namespace fast::testing {

/// Memory of a host.
class Records {
 public:
  explicit Records(int ranks, int shares = 0)
      : format_(membership::record_format(shares)),
        ranks_(static_cast<std::size_t>(ranks)),
        words_(format_.words * static_cast<std::size_t>(ranks)) {}

  std::vector<std::byte*> parts() {
    std::vector<std::byte*> parts;
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      parts.push_back(reinterpret_cast<std::byte*>(words_.data() + rank * format_.words));
    return parts;
  }
  membership::RecordBoard board(int rank) { return {parts(), rank, format_}; }
  membership::SeatRecords seats_of(int rank) { return membership::SeatRecords(board(rank)); }
  membership::RoundAgreement growths_of(int rank) {
    return {board(rank), membership::word::growth};
  }
  /// It ticks when the test says so.
  std::shared_ptr<membership::Coordinator> coordinator(
      int rank, std::function<std::vector<int>()> died = {}) {
    return std::make_shared<membership::Coordinator>(
        membership::Reach{.rank = rank,
                          .parts = parts(),
                          .owner = nullptr,
                          .hosts = std::vector<int>(ranks_),
                          .datagrams = nullptr,
                          .died = std::move(died)},
        format_);
  }

 private:
  membership::RecordBoard::Format format_;
  std::size_t ranks_;
  std::vector<membership::RecordBoard::Word> words_;
};

/// Rank 0's map of a run with so many founders; ranks may write to their records.
struct Hall {
  Hall(int founders, int ranks) : memory(ranks), map(memory.board(0), founders) {
    for (int rank = 0; rank < ranks; ++rank) own.push_back(memory.seats_of(rank));
  }
  void claim(int spare, int seat, std::uint64_t version, membership::SeatClaim::Phase phase) {
    own[static_cast<std::size_t>(spare)].set_claim({0, version, seat, phase});
  }
  Records memory;
  std::vector<membership::SeatRecords> own;
  membership::RankMap map;
};

}  // namespace fast::testing
