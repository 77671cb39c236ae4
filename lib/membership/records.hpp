// What the ranks of a group say of themselves: words that only grow. Who sits where, how far the
// run is, what is agreed on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "membership/peer_state.hpp"

namespace fast::membership {

/// A request or a growth (1, 2, ...) or an epoch, and a round.
struct NumberedRound {
  std::uint64_t number = 0;
  std::int64_t round = 0;
  bool operator==(const NumberedRound&) const = default;
};

/// As a word that grows with the number, and then with the round. A round has 40 bits.
std::uint64_t word_of(NumberedRound value);
NumberedRound numbered_round_in(std::uint64_t word);

/// One record of words for each rank, zero at first. The ranks of a host share it. A rank of
/// another host has a copy. Every word only grows, so the larger of two copies is the newer one.
///
/// A rank raises the words of its own record, and reads all records. The words before `common` are
/// its own. The word at `common` is everybody's: any rank raises it in any record.
///
/// Words are sequentially consistent. Copies of a record are read from its first word to its last
/// and taken over from the last to the first. A word that says that others are there (a settled
/// number) therefore stands before those others (the shares). The common words are read after all
/// others and are taken over before them. What a rank has said of others is thus known wherever a
/// later word of that rank is known.
class RecordBoard {
 public:
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free);

  struct Format {
    std::size_t words = 0;   ///< of a record
    std::size_t common = 0;  ///< the place of the word that everybody raises
    std::size_t size_bytes() const { return words * sizeof(Word); }
  };

  /// `parts`: by rank, memory for a record each. It outlives this board and its copies.
  RecordBoard(std::span<std::byte* const> parts, int rank, const Format& format);

  int size() const { return static_cast<int>(records_.size()); }
  int rank() const { return rank_; }
  std::size_t words_of_all() const { return records_.size() * format_.words; }

  std::uint64_t read(int rank, std::size_t word) const {
    return at(rank, word).load(std::memory_order_seq_cst);
  }
  std::uint64_t own(std::size_t word) const { return read(rank_, word); }
  /// The largest of all ranks.
  std::uint64_t newest(std::size_t word) const;

  /// A word that is as large stays as it is.
  void raise(std::size_t word, std::uint64_t value) const { raise(at(rank_, word), value); }
  void raise_common(int rank) const { raise(at(rank, format_.common), 1); }
  /// Adds 1 to a word that the caller alone raises.
  void count(std::size_t word) const { at(rank_, word).fetch_add(1, std::memory_order_seq_cst); }

  /// All records: words_of_all() words.
  void copy_to(std::span<std::uint64_t> words) const;
  /// Another rank's copies. Of ranks that are `here`, only the common words count.
  void take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here) const;

 private:
  Word& at(int rank, std::size_t word) const {
    return records_[static_cast<std::size_t>(rank)][word];
  }
  static void raise(Word& word, std::uint64_t value);

  std::vector<Word*> records_;
  int rank_;
  Format format_;
};

namespace word {

/// A RoundAgreement has three words from its place on.
inline constexpr std::size_t of_agreement = 3;

/// The order matters: see RecordBoard.
enum Place : std::size_t {
  beat,  ///< counts the rank's ticks
  // Of seats.
  claim,        ///< a SeatClaim
  status,       ///< a WorkerStatus
  progress,     ///< combinations finished, and how many of those no round has made
  republished,  ///< combinations that no round has made, some of which may not be finished
  repeated,     ///< a SpareWork, as are the next two
  began,        ///< the round plus 1
  made_up,
  // Of a run.
  stage,       ///< a Stage, in which round, and Marks
  next_epoch,  ///< a NumberedRound: the next epoch, and the round in which it begins
  // Of agreements.
  save,
  stop = save + of_agreement,
  lower = stop + of_agreement,
  growth = lower + of_agreement,
  division = growth + of_agreement,  ///< of shares: rounds are epochs
  speed = division + of_agreement,   ///< of this worker, for a division
  trained,                           ///< rounds: grows while the worker trains
  given_up,                          ///< the common word; 1: some worker ends without this one
  first_share,                       ///< of each worker, in the division that is settled
};

}  // namespace word

/// `shares`: 0 in a run that does not divide its batches anew.
inline RecordBoard::Format record_format(int shares = 0) {
  return {word::first_share + static_cast<std::size_t>(shares), word::given_up};
}

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

/// Of a spare on a seat. Numbers only grow.
struct SpareWork {
  /// The round; empty: it has not begun, or was no spare.
  std::optional<std::int64_t> began_in{};
  std::int64_t made_up = 0;    ///< batches of its predecessors that it has made up for
  std::uint64_t repeated = 0;  ///< what it does again of their work, in its owner's unit
};

/// What ranks say of their seats. Functions without a rank are of this rank's own record.
class SeatRecords : public RecordBoard {
 public:
  explicit SeatRecords(const RecordBoard& board) : RecordBoard(board) {}

  SeatClaim claim(int rank) const;
  WorkerStatus status(int rank) const {
    return static_cast<WorkerStatus>(read(rank, word::status));
  }
  std::int64_t progress(int rank) const;
  /// Combinations of its progress that rounds have made.
  std::int64_t progress_by_rounds(int rank) const;
  std::int64_t republished(int rank) const {
    return static_cast<std::int64_t>(read(rank, word::republished));
  }
  SpareWork work_of(int rank) const;

  /// The claim without its number of changes.
  void set_claim(SeatClaim claim);
  void set_status(WorkerStatus status) { raise(word::status, static_cast<std::uint64_t>(status)); }
  /// set_republished() of them has been called.
  void set_progress(std::int64_t combinations);
  void set_republished(std::int64_t combinations) {
    raise(word::republished, static_cast<std::uint64_t>(combinations));
  }
  /// What is left empty or 0 stays as it is.
  void set_work(const SpareWork& work);
};

/// left: before the end, as the worker was asked to.
enum class Stage : std::uint64_t { running, done, stopped, left };

/// What a worker that has ended says of itself.
enum class Mark : std::uint64_t {
  concluded = 1,  ///< it knows that all have ended, and has given up those that it has lost
  saved = 2,      ///< what it was to save is saved
  unsaved = 4,    ///< it is not
};

/// What ranks say of their part in a run. Functions without a rank are of this rank's own record.
class RunRecords : public RecordBoard {
 public:
  /// Says whether a rank takes part: a spare does only while it has a seat and trains.
  using TakesPart = std::function<bool(int rank)>;
  /// Without `takes_part` all do.
  explicit RunRecords(const RecordBoard& board, TakesPart takes_part = {})
      : RecordBoard(board), takes_part_(std::move(takes_part)) {}

  bool takes_part(int rank) const { return !takes_part_ || takes_part_(rank); }
  bool is_running(int rank) const { return takes_part(rank) && stage_of(rank) == Stage::running; }
  bool has_left(int rank) const { return stage_of(rank) == Stage::left; }
  /// By itself: its rounds are done, or it was asked to stop. A newcomer on its way has not.
  bool has_ended(int rank) const {
    return stage_of(rank) == Stage::done || stage_of(rank) == Stage::stopped;
  }
  std::int64_t rounds_of_ended(int rank) const;
  bool has(int rank, Mark what) const;
  bool any_has_come_to(Stage stage) const;
  bool is_given_up(int rank) const { return read(rank, word::given_up) != 0; }
  /// The furthest one of all workers.
  NumberedRound next_epoch() const { return numbered_round_in(newest(word::next_epoch)); }

  void end(Stage stage, std::int64_t rounds);
  void mark(Mark what);
  void note_next_epoch(NumberedRound epoch) { raise(word::next_epoch, word_of(epoch)); }
  /// This worker ends without that one.
  void give_up(int rank) { raise_common(rank); }

 private:
  Stage stage_of(int rank) const;

  TakesPart takes_part_;
};

}  // namespace fast::membership
