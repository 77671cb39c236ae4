// How the workers of a run agree on the round from which they are one more. Training continues
// meanwhile. Growths are numbered 1, 2, ...; growth k opens the seat founders + k - 1. A growth is
// a request of a RoundAgreement:
//
//   1. request() on any worker: one growth more is wanted. The seat is open, and the lowest free
//      spare takes it (see SeatAssignment). It prepares, and does not train yet.
//   2. advance() on each worker, when it sees the spare there: it answers with the last round that
//      it begins before the growth is settled. That is a little later than the round under way.
//   3. advance() on the lowest worker that is there: when all have answered, it settles on a round
//      after all those rounds.
//   4. take_turn() on each worker, between rounds: the worker holds at the bound that it has
//      answered until the growth is settled. From the settled round on it reads the new seat.
//
// A worker answers for a further growth when it has entered the last one. Workers that are gone are
// not waited for: they enter late, when they come back. A spare that prepares to take the seat of
// such a worker is waited for: it may come to train in the round of the growth, and then it must
// know of the growth before.
#pragma once

#include <fast/membership/growth_rounds.hpp>

#include <cstdint>
#include <optional>

#include "membership/coordinator.hpp"
#include "membership/round_agreement.hpp"
#include "membership/seat_assignment.hpp"

namespace fast::membership {

/// Throws Error(peer_failed) if a worker has failed.
void require_nobody_failed(const RankMap& map);

/// One worker's part. Any thread may call, but for the calls of the owner.
class SeatGrowth {
 public:
  /// Both outlive this. The coordinator's lock guards both.
  SeatGrowth(Coordinator& coordinator, SeatAssignment& seating)
      : coordinator_(coordinator),
        seating_(seating),
        map_(seating.map()),
        growths_(map_.growths()) {}

  // Of its owner, which holds the lock.
  void advance();
  /// Workers are to answer and to settle now, and may hold meanwhile: ticks should follow quickly.
  bool is_busy() const;

  // None of these blocks.
  /// The worker may enter growths, before these rounds only.
  void allow(const GrowthRounds& rounds);
  bool is_allowed() const;
  /// One worker more than those that are wanted already.
  void request();
  /// Growths that are wanted, entered or not; and spares that none of them will need.
  int wanted() const;
  int spares_left() const;
  /// The growth that is settled and that this worker has not entered.
  std::optional<NumberedRound> coming() const;
  /// The worker has done what take_turn() has asked for. With GrowthRounds::every above 1 it must
  /// allow the next growth anew: its rounds may have moved.
  void enter();
  /// The round of the last growth that this worker has entered. Empty: there was none, or it is not
  /// known.
  std::optional<std::int64_t> entered_in() const;
  /// Between rounds, when `rounds` are made. After `go` the worker begins another one. Growths are
  /// settled at least `ahead` rounds later, so that all workers know of them in time.
  RoundDecision turn(std::int64_t rounds, std::int64_t ahead);

  /// The same, but waits while the turn is `hold`; throws Error(deadline).
  RoundDecision take_turn(std::int64_t rounds, std::int64_t ahead, Seconds deadline);
  /// Of a spare that begins to train after `rounds` rounds, before it publishes for the next one:
  /// it has entered the growths of these rounds, and answers for a further one. Waits until all
  /// news of the last growth have come, a few seconds at most.
  void begin(std::int64_t rounds);
  /// Of a spare that is to join with growth `number`: blocks until some worker has come to the
  /// growth's round, which it returns; -1 when the run has grown further. Empty when training has
  /// ended before, or when the launcher has asked this rank to leave.
  std::optional<std::int64_t> wait_for(int number);

 private:
  bool trains(int rank) const;
  bool has_newcomer(std::uint64_t growth) const;
  bool some_have_answered(std::uint64_t growth) const;
  bool a_spare_prepares(std::uint64_t growth) const;
  bool all_have_entered(NumberedRound last) const;
  void answer();
  void settle();
  std::int64_t first_round_from(std::int64_t round) const;
  std::optional<NumberedRound> next() const;
  bool try_to_begin(std::int64_t rounds);
  RoundDecision look(std::int64_t rounds, std::int64_t ahead);
  void end_unneeded();

  Coordinator& coordinator_;
  SeatAssignment& seating_;
  RankMap& map_;
  RoundAgreement& growths_;
  std::optional<GrowthRounds> allowed_;
  std::optional<std::int64_t> begun_;  ///< the round under way
  std::optional<NumberedRound> due_;   ///< the worker is to enter it, whatever is settled meanwhile
  std::int64_t ahead_ = 0;
  std::optional<std::int64_t> entered_in_;
};

}  // namespace fast::membership
