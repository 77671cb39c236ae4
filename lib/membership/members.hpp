// The members of a run with spares: who is there on which seat, and how seats change hands beside
// training.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "membership/coordinator.hpp"
#include "membership/seat_assignment.hpp"
#include "membership/seat_growth.hpp"

namespace fast::membership {

/// One rank's part.
class Members final : private Protocol {
 public:
  /// Of all ranks: those of the seats, then the spares.
  Members(std::shared_ptr<Coordinator> coordinator, int founders);
  ~Members();
  // Any thread. These do not block.
  /// Who sits where.
  RankMap& map() { return map_; }
  const RankMap& map() const { return map_; }
  SeatGrowth& growth() { return growth_; }
  const SeatGrowth& growth() const { return growth_; }
  const std::shared_ptr<Coordinator>& coordinator() const { return coordinator_; }

  /// A rank without a sign of life for that long is gone; before the call, none is silent. Workers
  /// combine in every `steps`-th round, `times` times.
  void watch(Seconds silent_after, std::int64_t steps, std::int64_t times);
  /// Of all spares: see SpareWork.
  std::uint64_t repeated() const;
  /// A spare will probably take the seat of that lost worker soon.
  bool is_awaited(int seat) const;
  /// Ranks are missing, so that calls that are collective over all ranks would not end: some rank
  /// was lost, or a spare has a seat or has joined.
  bool some_are_missing() const;

  /// Of a spare: blocks until there is a seat for it. Empty when training has ended without it, or
  /// when the launcher has asked this rank to leave.
  /// Calls `began` when all workers have met. Throws Error(peer_failed) if a worker has failed, or
  /// Error(deadline) if all workers are gone.
  std::optional<SeatOffer> wait_for_seat(const std::function<void()>& began);
  /// The spare's worker is ready: from now on the others read it. False if the seat is not vacant
  /// any more; the spare may wait for another one.
  bool take();
  /// Takes no seat, or no other one, any more. A seat that it has falls vacant.
  void release();
  /// Of a worker that knows from elsewhere that all have ended: waits until they say so here, too,
  /// a few seconds at most. From then on RankMap::joined() is the same on all.
  void await_end();

 private:
  void advance() override;
  bool is_busy() const override;
  void end_unneeded();

  std::shared_ptr<Coordinator> coordinator_;  ///< its lock guards all but map_
  bool awaits_end_ = false;
  RankMap map_;
  SeatAssignment seating_;
  SeatGrowth growth_;
};

}  // namespace fast::membership
