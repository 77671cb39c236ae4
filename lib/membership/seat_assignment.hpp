// How seats change hands. A spare takes the seat of a worker that is gone, for good:
//
//   1. tick() on each spare: a seat is vacant if training has begun and its holder is gone and has
//      not finished. The k-th lowest free spare claims the k-th lowest vacant seat.
//   2. The spare waits for others' claims to arrive. It withdraws if a stronger claim to the seat
//      is there, or if the holder is back.
//   3. offered() names the seat. The spare's owner prepares, then calls take(), which looks again.
//
// Training has begun when some rank runs: a worker notes that when all have met. A worker that is
// gone before leaves the others waiting for it, so that nobody may train in its place.
//
// A spare may leave its seat, which is then vacant. A seat that a growth has opened is vacant until
// a spare takes it.
//
// Two spares may both be seated when their news crossed; the weaker one then finds that it has no
// seat, as does a former holder that was only suspended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "membership/liveness.hpp"
#include "membership/rank_map.hpp"

namespace fast::membership {

/// A seat that a spare is to take.
struct SeatOffer {
  int seat = 0;
  std::uint64_t version = 0;
  std::int64_t rounds = 0;       ///< that the former holder is known to have made
  int growth = 0;                ///< the one that has opened the seat; 0: a founder began there
  std::int64_t republished = 0;  ///< combinations of the workers that no round has made
  /// Nobody has trained there: who was to join was lost before.
  bool is_unused() const { return growth > 0 && rounds == 0; }
};

/// One rank's part. Calls are one thread's at a time.
class SeatAssignment {
 public:
  /// A rank is gone without a sign of life for `silent_after_s`. News of claims arrive within
  /// `news_s`. `map` and `liveness` outlive this.
  SeatAssignment(RankMap& map, Liveness& liveness, double silent_after_s, double news_s);

  RankMap& map() { return map_; }
  const RankMap& map() const { return map_; }
  void set_silent_after(double silent_after_s) { silent_after_s_ = silent_after_s; }

  /// After each look of the liveness.
  void tick();
  /// It shows no sign of life, the launcher has reported its death, or it has left its seat.
  bool is_gone(int rank) const;
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
  /// Spares that no growth that is wanted will need.
  int spares_left() const;

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
  void note_vacancies();
  bool is_vacant(int seat) const { return vacant_at_s_[static_cast<std::size_t>(seat)] >= 0; }
  std::vector<int> vacant() const;
  std::vector<int> free_spares() const;
  bool is_claimed(int seat) const;
  bool is_beaten(const SeatClaim& own) const;
  double news_of_claims_s() const;
  bool joins_soon() const;
  void claim_one();

  RankMap& map_;
  SeatRecords& records_;
  Liveness& liveness_;
  double silent_after_s_, news_s_;
  std::vector<double> vacant_at_s_;  ///< by seat; negative: it is not
  double claimed_at_s_ = 0;
  bool accepted_ = false;
};

}  // namespace fast::membership
