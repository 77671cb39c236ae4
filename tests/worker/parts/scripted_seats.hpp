// The seats of a run, as one rank sees them among others whose records are in the test's hand.
#pragma once

#include <memory>

#include "membership/hall.hpp"
#include "membership/members.hpp"

namespace fast::testing {

/// Ranks of one host, whose records are in the test's hand.
struct ScriptedSeats {
  ScriptedSeats(int founders, int spares, int own) : memory(founders + spares) {
    const auto coordinator = memory.coordinator(own);
    members = std::make_shared<membership::Members>(coordinator, founders);
    coordinator->start();
    for (int rank = 0; rank < founders; ++rank) of(rank).set_status(WorkerStatus::running);
  }
  membership::SeatRecords of(int rank) { return memory.seats_of(rank); }
  /// One worker more is wanted.
  void want() { memory.growths_of(0).propose(1); }
  /// The workers are one more from that round on.
  void settle(int number, std::int64_t round) {
    memory.growths_of(0).settle({static_cast<std::uint64_t>(number), round});
  }
  /// The same, with that spare on the new seat.
  void settle(int number, std::int64_t round, int spare) {
    const int seat = members->map().founders() + number - 1;
    of(spare).set_claim(
        {.version = 1, .seat = seat, .phase = membership::SeatClaim::Phase::seated});
    settle(number, round);
  }

  Records memory;
  std::shared_ptr<membership::Members> members;
};

}  // namespace fast::testing
