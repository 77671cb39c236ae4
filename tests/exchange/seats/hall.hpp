#pragma once

#include <optional>
#include <vector>

#include "exchange/seats/seat_table.hpp"

namespace fast::testing {

using exchange::SeatClaim, exchange::SeatRecord, exchange::SeatRecords, exchange::SeatTable;

/// Rank 0's table of a run with so many founders; ranks may write to their records.
struct Hall {
  Hall(int founders, int ranks) : memory(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) own.emplace_back(all(), rank);
    table.emplace(SeatRecords(all(), 0), founders);
  }
  std::vector<SeatRecord*> all() {
    std::vector<SeatRecord*> records;
    for (SeatRecord& record : memory) records.push_back(&record);
    return records;
  }
  void claim(int spare, int seat, std::uint64_t version, SeatClaim::Phase phase) {
    own[static_cast<std::size_t>(spare)].set_claim({0, version, seat, phase});
  }
  std::vector<SeatRecord> memory;
  std::vector<SeatRecords> own;
  std::optional<SeatTable> table;
};

}  // namespace fast::testing
