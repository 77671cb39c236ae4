// What workers know of each other while they agree on a round. Each worker writes its own record
// and reads all of them. Only `given_up` is written by the others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace fast::train {

enum class Request { save, stop };
inline constexpr std::size_t request_count = 2;

/// left: before the end, as the worker was asked to.
enum class Stage : std::uint64_t { running, done, stopped, left };

/// What a worker that has ended says of itself.
enum class Mark : std::uint64_t {
  concluded = 1,  ///< it knows that all have ended, and has given up those that it has lost
  saved = 2,      ///< what it was to save is saved
  unsaved = 4,    ///< it is not
};

/// See agreement.hpp. Zero at the beginning. Every word of it only grows, so that the larger of two
/// copies is the newer one.
struct AgreementRecord {
  using Word = std::atomic<std::uint64_t>;
  Word beat, stage;
  Word next_epoch;  ///< a NumberedRound: the next epoch, and the round in which it begins
  std::array<Word, request_count> wanted, answered, settled;
  Word given_up;  ///< 1: some worker ends without this one
  static constexpr std::size_t words = 4 + 3 * request_count;
};
static_assert(AgreementRecord::Word::is_always_lock_free);
static_assert(sizeof(AgreementRecord) == AgreementRecord::words * sizeof(std::uint64_t));

/// A request and a round: a worker's bound, or where all save or stop. Or an epoch and a round.
struct NumberedRound {
  std::uint64_t number = 0;
  std::int64_t round = 0;
};

/// The records of all workers as one of them knows them.
class AgreementRecords {
 public:
  /// Says whether a rank takes part: a spare does only while it has a seat and trains.
  using TakesPart = std::function<bool(std::size_t rank)>;
  /// `records`: by rank. Without `takes_part` all do.
  AgreementRecords(std::vector<AgreementRecord*> records, int rank, TakesPart takes_part = {})
      : records_(std::move(records)),
        rank_(static_cast<std::size_t>(rank)),
        takes_part_(std::move(takes_part)) {}

  /// By rank.
  const std::vector<AgreementRecord*>& all() const { return records_; }
  std::size_t rank() const { return rank_; }

  bool takes_part(std::size_t worker) const { return !takes_part_ || takes_part_(worker); }
  std::uint64_t newest_wanted(Request what) const;
  NumberedRound newest_settled(Request what) const;
  NumberedRound answer_of(std::size_t worker, Request what) const;
  std::uint64_t beat_of(std::size_t worker) const;
  bool is_running(std::size_t worker) const;
  std::int64_t rounds_of_ended(std::size_t worker) const;
  bool any_was_stopped() const;
  bool has_left(std::size_t worker) const;
  bool has(std::size_t worker, Mark what) const;
  bool is_given_up(std::size_t worker) const;
  /// The furthest one of all workers.
  NumberedRound next_epoch() const;

  // Of this worker's own record.
  std::uint64_t wanted(Request what) const;
  void beat();
  void want(Request what, std::uint64_t number);
  void answer(Request what, NumberedRound bound);
  void settle(Request what, NumberedRound settled);
  void end(Stage stage, std::int64_t rounds);
  void mark(Mark what);
  void note_next_epoch(NumberedRound epoch);

  /// This worker ends without that one.
  void give_up(std::size_t worker);

 private:
  AgreementRecord& own() const { return *records_[rank_]; }

  std::vector<AgreementRecord*> records_;
  std::size_t rank_;
  TakesPart takes_part_;
};

/// All records as words, for workers of other hosts.
void copy(const AgreementRecords& records, std::span<std::uint64_t> words);
/// Another worker's copies of the records of workers that are not `here`.
void take_over(const AgreementRecords& records, std::span<const std::uint64_t> words,
               const std::vector<bool>& here);

}  // namespace fast::train
