// Who sits where, as it follows from the records of all ranks. Training begins with `founders`
// places in its topology; as many ranks begin on the seats of their numbers, and the further ranks
// are spares. A spare takes the seat of a worker that is gone (see SeatAssignment). Growth k opens
// the seat founders + k - 1 (see SeatGrowth): nobody has begun there.
//
// holder() is the claim of the highest version that was ever seated, and of the lowest rank among
// those. So all ranks with the same records agree.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "membership/records.hpp"
#include "membership/round_agreement.hpp"

namespace fast::membership {

inline constexpr int nobody = -1;

/// Any thread may ask. What changes the own record is one thread's at a time.
class RankMap {
 public:
  RankMap(const RecordBoard& board, int founders);

  int founders() const { return founders_; }
  int rank() const { return records_.rank(); }
  bool is_spare(int rank) const { return rank >= founders_; }
  SeatRecords& records() { return records_; }
  const SeatRecords& records() const { return records_; }
  RoundAgreement& growths() { return growths_; }
  const RoundAgreement& growths() const { return growths_; }

  /// As this rank trains: the founders' and one for each growth that it has entered.
  int seats() const { return founders_ + entered_; }
  int entered() const { return entered_; }
  /// Of a spare that has a seat, or is to take one: it trains in a run that has grown so often.
  void enter(int growths) { entered_ = growths; }
  /// Growths in whose rounds some worker has arrived.
  int begun_growths() const;
  /// Growths that every worker has entered: a further one is settled only then.
  int past_growths() const;
  /// Those that have holders or shall have some.
  int open_seats() const;
  /// The furthest worker's rounds. Workers combine in every `steps`-th round, `times` times.
  std::int64_t furthest_round() const;
  std::int64_t rounds(int rank) const {
    return records_.progress_by_rounds(rank) / times_ * steps_;
  }
  /// Combinations that no round has made: at staleness 0 as many on all workers.
  std::int64_t most_republished() const;
  void set_pace(std::int64_t steps, std::int64_t times) {
    steps_ = steps;
    times_ = times;
  }

  /// `nobody` on a seat that a growth has opened and no spare has taken yet.
  int holder(int seat) const;
  /// The seat on which that rank is or was; empty for a spare that has never had one.
  std::optional<int> seat_of(int rank) const;
  /// This rank's seat, also of a spare that prepares to take it.
  std::optional<int> own_seat() const;
  /// Whether that rank has part in training, or had when it was lost: all but spares without a
  /// seat.
  bool takes_part(int rank) const;
  /// The same, but for a spare that prepares to join.
  bool has_begun(int rank) const;
  /// Of workers, ascending: whose ranks are so. Nobody's seats are left out.
  std::vector<int> workers_that(const std::function<bool(int rank)>& are) const;
  /// The number by which a rank is known: its seat, or its rank if it has none.
  int number_of(int rank) const;
  /// The seats that growths have opened and that are used.
  std::vector<int> joined() const;
  /// Whether this rank holds a seat now.
  bool has_seat() const;
  /// Whether that rank has lost or left the seat that it had.
  bool is_replaced(int rank) const;
  /// Seats that spares have taken from workers.
  std::vector<int> taken() const;

  /// Whether all workers have met.
  bool has_begun() const;
  /// Of the claims to that seat; 0 if there were none.
  std::uint64_t newest_version(int seat) const;

 private:
  SeatRecords records_;
  RoundAgreement growths_;
  int founders_;
  std::atomic<int> entered_{0};
  std::atomic<std::int64_t> steps_{1}, times_{1};
};

/// From `begin` to before `end`.
struct RoundSpan {
  std::int64_t begin = 0, end = 0;
  bool operator==(const RoundSpan&) const = default;
};

/// Rounds of that seat that were left out before its last holder but one began, and that spares
/// have not made up for. They make up for the first ones first.
std::vector<RoundSpan> left_out_before(const RankMap& map, int seat);

}  // namespace fast::membership
