// What ranks know of each other's seats. Each rank writes its own record and reads all of them,
// directly or as an older copy. Every word of a record only grows, so that the larger of two copies
// is the newer one.
#pragma once

#include <fast/exchange/peers.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fast::exchange {

/// A spare's claim to a seat.
struct SeatClaim {
  enum class Phase : std::uint64_t {
    none,      ///< it sleeps
    claiming,  ///< it prepares to take the seat
    seated,    ///< it holds the seat, unless another claim is stronger
    released,  ///< it takes no seat any more
    vacated,   ///< it held the seat and has left it
  };
  std::uint64_t changes = 0;  ///< of this claim, so that its word grows
  std::uint64_t version = 0;  ///< 1 for the first spare on the seat, and so on
  int seat = 0;
  Phase phase = Phase::none;
  /// It has held the seat, or holds it.
  bool was_seated() const { return phase == Phase::seated || phase == Phase::vacated; }
  bool operator==(const SeatClaim&) const = default;
};

/// A growth of the run (1, 2, ...) and a round; see SeatGrowth.
struct NumberedGrowth {
  std::uint64_t number = 0;
  std::int64_t round = 0;
};

/// Of a spare on a seat. Numbers only grow.
struct SpareWork {
  /// The round; empty: it has not begun, or was no spare.
  std::optional<std::int64_t> began_in{};
  std::int64_t made_up = 0;    ///< batches of its predecessors that it has made up for
  std::uint64_t repeated = 0;  ///< what it does again of their work, in its owner's unit
};

/// Zero at the beginning.
struct SeatRecord {
  using Word = std::atomic<std::uint64_t>;
  Word beat;         ///< counts the rank's ticks
  Word claim;        ///< a SeatClaim
  Word status;       ///< a WorkerStatus
  Word progress;     ///< combinations finished
  Word republished;  ///< combinations, of those, that no round has made
  Word repeated;     ///< a SpareWork, as are the next two
  Word began;        ///< the round plus 1
  Word made_up;
  Word wanted;    ///< growths that the rank knows to be wanted
  Word answered;  ///< a NumberedGrowth: the last round that it begins before that growth is settled
  Word settled;   ///< a NumberedGrowth: from that round on the workers are one more
  static constexpr std::size_t words = 11;
};
static_assert(SeatRecord::Word::is_always_lock_free);
static_assert(sizeof(SeatRecord) == SeatRecord::words * sizeof(std::uint64_t));

/// The records of all ranks as one of them knows them.
class SeatRecords {
 public:
  /// `records`: by rank.
  SeatRecords(std::vector<SeatRecord*> records, int rank)
      : records_(std::move(records)), rank_(rank) {}

  int size() const { return static_cast<int>(records_.size()); }
  int rank() const { return rank_; }

  std::uint64_t beat(int rank) const { return read(at(rank).beat); }
  SeatClaim claim(int rank) const;
  WorkerStatus status(int rank) const { return static_cast<WorkerStatus>(read(at(rank).status)); }
  std::int64_t progress(int rank) const {
    return static_cast<std::int64_t>(read(at(rank).progress));
  }
  std::int64_t republished(int rank) const {
    return static_cast<std::int64_t>(read(at(rank).republished));
  }
  SpareWork work_of(int rank) const;
  NumberedGrowth answer_of(int rank) const;
  std::uint64_t newest_wanted() const;
  NumberedGrowth newest_settled() const;

  // Of this rank's own record.
  void add_beat() { at(rank_).beat.fetch_add(1, std::memory_order_relaxed); }
  /// The claim without its number of changes.
  void set_claim(SeatClaim claim);
  void set_status(WorkerStatus status);
  void set_progress(std::int64_t combinations);
  void set_republished(std::int64_t combinations);
  /// What is left empty or 0 stays as it is.
  void set_work(const SpareWork& work);
  void want(std::uint64_t growths);
  void answer(NumberedGrowth bound);
  void settle(NumberedGrowth settled);

  /// All records.
  void copy_to(std::span<std::uint64_t> words) const;
  /// Another rank's copies of the records of ranks that are not `here`.
  void take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here);

 private:
  static std::uint64_t read(const SeatRecord::Word& word) {
    return word.load(std::memory_order_seq_cst);
  }
  SeatRecord& at(int rank) const { return *records_[static_cast<std::size_t>(rank)]; }

  std::vector<SeatRecord*> records_;
  int rank_;
};

}  // namespace fast::exchange
