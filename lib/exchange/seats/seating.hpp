// Who sits where. Training begins with `founders` places in its topology; as many ranks begin on
// the seats of their numbers, and the further ranks are spares. A spare takes the seat of a worker
// that is gone, for good:
//
//   1. tick() on each spare: a seat is vacant if training has begun and its holder is gone (it
//      shows no sign of life, or the launcher has reported its death) and has not finished. The
//      k-th lowest free spare claims the k-th lowest vacant seat.
//   2. The spare waits for others' claims to arrive. It withdraws if a stronger claim to the seat
//      is there, or if the holder is back.
//   3. offered() names the seat. The spare's owner prepares, then calls take(), which looks again.
//
// Training has begun when some rank runs: a worker notes that when all have met. A worker that is
// gone before leaves the others waiting for it, so that nobody may train in its place.
//
// A spare may leave its seat, which is then vacant.
//
// A run may grow (see SeatGrowth): growth k opens the seat founders + k - 1. Nobody has begun
// there, so it is vacant until a spare takes it.
//
// holder() follows from the records alone: the claim of the highest version that was ever seated,
// and of the lowest rank among those. So all ranks with the same records agree. Two spares may both
// be seated when their news crossed; the weaker one then finds that it has no seat, as does a
// former holder that was only suspended.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "exchange/seats/seat_records.hpp"

namespace fast::exchange {

/// A seat that a spare is to take.
struct SeatOffer {
  int seat = 0;
  std::uint64_t version = 0;
  std::int64_t progress = 0;  ///< combinations that the former holder is known to have finished
  int growth = 0;             ///< the one that has opened the seat; 0: a founder began there
};

inline constexpr int nobody = -1;

/// One rank's part. tick() and what changes the own record are one thread's at a time; the
/// functions that only ask may be called by any thread meanwhile.
class Seating {
 public:
  /// A rank is silent when its beat has stood still for `silent_after_s`. News of claims arrive
  /// within `news_s`.
  Seating(SeatRecords records, int founders, double silent_after_s, double news_s);

  int founders() const { return founders_; }
  /// As this rank trains: the founders' and one for each growth that it has entered.
  int seats() const { return founders_ + entered_; }
  int entered() const { return entered_; }
  void enter(int growths) { entered_ = growths; }

  // What follows from the records.
  int rank() const { return records_.rank(); }
  bool is_spare(int rank) const { return rank >= founders_; }
  /// `nobody` on a seat that a growth has opened and no spare has taken yet.
  int holder(int seat) const;
  /// Growths in whose rounds some worker has arrived.
  int begun_growths() const;
  /// Growths that every worker has entered: a further one is settled only then.
  int past_growths() const;
  /// Spares that no growth that is wanted will need.
  int spares_left() const;
  /// The seat on which that rank is or was; empty for a spare that has never had one.
  std::optional<int> seat_of(int rank) const;
  /// This rank's seat, also of a spare that prepares to take it.
  std::optional<int> own_seat() const;
  /// Whether that rank has part in training, or had when it was lost: all but spares without a
  /// seat.
  bool takes_part(int rank) const;
  /// Whether this rank holds a seat now.
  bool has_seat() const;
  /// Whether that rank has lost or left the seat that it had.
  bool is_replaced(int rank) const;
  /// Seats that spares have taken from workers.
  std::vector<int> taken() const;

  SeatRecords& records() { return records_; }
  const SeatRecords& records() const { return records_; }
  void set_silent_after(double silent_after_s) { silent_after_s_ = silent_after_s; }
  /// Rounds from one combination to the next.
  void set_steps(std::int64_t steps) { steps_ = steps; }
  std::int64_t steps() const { return steps_; }

  /// `elapsed_s`: the time since the last tick, as far as this process was running. `died`: ranks
  /// that the launcher has reported.
  void tick(double elapsed_s, const std::vector<int>& died);
  bool is_gone(int rank) const;
  /// Whether all workers have met.
  bool has_begun() const;
  /// Whether some rank is gone that had not finished.
  bool any_is_lost() const;
  /// Whether any rank trains that is not gone.
  bool anyone_trains() const;
  /// Whether every seat's holder has left as finished or is gone.
  bool all_have_ended() const;
  /// Whether a spare that lives prepares to take another seat than this one.
  bool others_are_claimed(int but) const;
  /// A spare will probably take that vacant seat soon.
  bool is_awaited(int seat) const;
  /// This spare changes seats, or will begin on a new one soon, or spares shall take seats: ticks
  /// should follow quickly.
  bool is_busy() const;

  /// Of a spare: the seat that it shall take now, if any.
  std::optional<SeatOffer> offered() const;
  /// The spare prepares to take the seat: its claim stays as it is.
  void accept() { accepted_ = true; }
  /// False if the seat is not vacant any more, or a stronger claim is there: the spare is free
  /// again.
  bool take();
  /// This spare takes no seat any more, and leaves the one that it has.
  void release();

 private:
  struct Sign {
    std::uint64_t beat = 0;
    double at_s = 0;
  };
  void look(double elapsed_s, const std::vector<int>& died);
  int open_seats() const;
  std::vector<int> vacant() const;
  std::vector<int> free_spares() const;
  bool is_claimed(int seat) const;
  bool is_beaten(const SeatClaim& own) const;
  double news_of_claims_s() const;
  bool joins_soon() const;
  std::uint64_t newest_version(int seat) const;
  void claim_one();

  SeatRecords records_;
  int founders_;
  std::atomic<int> entered_{0};
  std::int64_t steps_ = 1;
  double silent_after_s_, news_s_;
  double time_s_ = 0;
  std::vector<Sign> signs_;          ///< by rank
  std::vector<bool> gone_;           ///< by rank
  std::vector<int> died_;            ///< as the launcher has reported
  std::vector<double> vacant_at_s_;  ///< by seat; negative: it is not
  double claimed_at_s_ = 0;
  bool accepted_ = false;
};

}  // namespace fast::exchange
