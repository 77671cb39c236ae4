// The growths of a run on one rank: a SeatGrowth that the keeper of the seats advances, and the
// waits of those that take part.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "exchange/seats/seat_growth.hpp"

namespace fast::exchange {

/// Throws Error(peer_failed) if a worker has failed.
void require_nobody_failed(const SeatTable& table);

/// Part of a SeatKeeper, whose mutex guards both. Any thread may call.
class GrowthKeeper {
 public:
  GrowthKeeper(Seating& seating, std::mutex& mutex, std::condition_variable& changed)
      : seating_(seating), mutex_(mutex), changed_(changed), growth_(seating) {}

  // Of a worker: see SeatGrowth. None of these blocks.
  void allow(const GrowthRounds& rounds);
  bool is_allowed() const;
  void request();
  std::optional<NumberedGrowth> coming() const;
  void enter();
  std::optional<std::int64_t> entered_in() const;
  /// Of a spare that has a seat, or is to take one: it trains in a run that has grown so often.
  void enter(int growths) { seating_.table().enter(growths); }
  /// See SeatGrowth. Waits for news, a few seconds at most.
  void begin(std::int64_t rounds);
  int entered() const { return seating_.table().entered(); }
  int begun() const { return seating_.table().begun_growths(); }
  int past() const { return seating_.table().past_growths(); }
  /// Growths that are wanted, entered or not; and spares that none of them will need.
  int wanted() const;
  int spares_left() const;

  /// See SeatGrowth. Waits while the turn is `hold`; throws Error(deadline).
  GrowthTurn take_turn(std::int64_t rounds, std::int64_t ahead, Seconds deadline);
  /// Of a spare that is to join with growth `number`: blocks until some worker has come to the
  /// growth's round, which it returns; -1 when the run has grown further. Empty when training has
  /// ended before, or when the launcher has asked this rank to leave.
  std::optional<std::int64_t> wait_for(int number);

  /// Of the keeper's ticker, which holds the mutex.
  void tick() { growth_.tick(); }
  bool is_busy() const { return growth_.is_busy(); }

 private:
  Seating& seating_;
  std::mutex& mutex_;
  std::condition_variable& changed_;
  SeatGrowth growth_;
};

}  // namespace fast::exchange
