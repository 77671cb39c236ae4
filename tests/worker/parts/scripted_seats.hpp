// The seats of a run, as one rank sees them among others whose records are in the test's hand.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exchange/group_impl.hpp"
#include "exchange/seats/seat_keeper.hpp"

namespace fast::testing {

/// Ranks of one host, whose records are in the test's hand.
struct ScriptedSeats {
  class Host final : public GroupImpl {
   public:
    Host(ScriptedSeats& seats, int rank) : seats_(seats), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(seats_.memory.size()); }
    std::string name() const override { return "scripted"; }
    std::vector<std::string> all_gather(std::string_view, const Deadline&,
                                        std::string_view) override {
      return {};
    }
    Region allocate(std::size_t, const Deadline&) override {
      Region region;
      for (exchange::SeatRecord& record : seats_.memory)
        region.parts.push_back(reinterpret_cast<std::byte*>(&record));
      return region;
    }

   private:
    ScriptedSeats& seats_;
    int rank_;
  };

  ScriptedSeats(int founders, int spares, int own)
      : memory(static_cast<std::size_t>(founders + spares)),
        keeper(std::make_shared<exchange::SeatKeeper>(
            GroupImpl::group(std::make_shared<Host>(*this, own)), founders,
            Deadline(Seconds(30)))) {
    for (int rank = 0; rank < founders; ++rank) of(rank).set_status(WorkerStatus::running);
  }
  exchange::SeatRecords of(int rank) {
    std::vector<exchange::SeatRecord*> records;
    for (exchange::SeatRecord& record : memory) records.push_back(&record);
    return {std::move(records), rank};
  }
  /// The workers are one more from that round on, with that spare on the new seat.
  void settle(int number, std::int64_t round, int spare) {
    const int seat = keeper->table().founders() + number - 1;
    of(spare).set_claim({.version = 1, .seat = seat, .phase = exchange::SeatClaim::Phase::seated});
    of(0).settle({static_cast<std::uint64_t>(number), round});
  }

  std::vector<exchange::SeatRecord> memory;
  std::shared_ptr<exchange::SeatKeeper> keeper;
};

}  // namespace fast::testing
