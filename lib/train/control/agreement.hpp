// How workers agree on the round in which all save or stop, while each goes on training and any may
// be slow, stopped or dead.
//
// There are two requests, which do not touch each other: to save a checkpoint (number 1, 2, ...)
// and to stop (number 1). Each worker has a record that it alone writes and all read, directly or
// as an older copy. Every word of it only grows, so that the larger of two copies is the newer one.
//
//   beat      counts the worker's ticks; a worker whose beat stands still is silent
//   stage     running; done (all its rounds made) or stopped, and in which round; and marks that it
//             sets afterwards
//   wanted    the number of the latest request that the worker knows of
//   answered  that number, and a bound: the worker begins no round after it until the request is
//             settled. The bound is the round that the worker has begun, when asked to save a few
//             more
//   settled   that number, and the round in which all save or stop
//
// Events of a request:
//   1. request(): some worker, any, is asked. Its `wanted` grows.
//   2. tick() of each worker, from a thread beside training: it takes over `wanted` and answers.
//   3. tick() of the lowest worker that is running and not silent: once all such workers have
//      answered, it settles on the largest bound. No worker has gone past that round.
//   4. take_turn() of each worker, between rounds: hold at the bound while the request is not
//      settled; then go on to that round; there save or stop.
// A worker that falls silent is left out of 3. When the lowest itself does, the next settles; then,
// and when parts of a run cannot see each other, two rounds may be settled on, and the larger holds
// for those that have not reached the smaller. Workers with a staleness bound above 0 need not be
// in the same round: they never hold, and save or stop as soon as the request is settled.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fast::train {

enum class Request { save, stop };
inline constexpr std::size_t request_count = 2;

enum class Stage : std::uint64_t { running, done, stopped };

/// What a worker that has ended says of itself.
enum class Mark : std::uint64_t {
  concluded = 1,  ///< it knows that all have ended
  saved = 2,      ///< what it was to save is saved
  unsaved = 4,    ///< it is not
};

/// What a worker does next.
enum class Turn { go, hold, save, stop };

/// See above. Zero at the beginning.
struct AgreementRecord {
  using Word = std::atomic<std::uint64_t>;
  Word beat, stage;
  std::array<Word, request_count> wanted, answered, settled;
  static constexpr std::size_t words = 2 + 3 * request_count;
};
static_assert(AgreementRecord::Word::is_always_lock_free);
static_assert(sizeof(AgreementRecord) == AgreementRecord::words * sizeof(std::uint64_t));

/// One worker's part. Not for several threads at once.
class Agreement {
 public:
  /// `records`: by worker. exact: all save and stop in the same round. A worker is silent when its
  /// beat has stood still for so much of this worker's own time.
  Agreement(std::vector<AgreementRecord*> records, int rank, bool exact, double silent_after_s);

  /// The next checkpoint, unless it is wanted already; or the run's end.
  void request(Request what);
  /// So much time has passed for this worker since the last tick.
  void tick(double elapsed_s);
  /// Between rounds, of which `rounds` are made. After `go` one more is begun. A checkpoint may be
  /// of a round so far ahead that the others can hear of it meanwhile.
  Turn take_turn(std::int64_t rounds, std::int64_t ahead);
  /// The checkpoint that take_turn() asked for has been taken.
  void saved();
  /// Of the request that take_turn() has told.
  std::int64_t round_of(Request what) const;

  /// This worker makes no further round.
  void end(Stage stage, std::int64_t rounds);
  /// Some request is under way: ticks should follow quickly.
  bool is_busy() const;
  /// Whether all but silent workers, and those of `lost`, have ended; any of them stopped.
  bool all_have_ended(const std::vector<int>& lost) const;
  bool any_was_stopped() const;
  void mark(Mark what);
  bool has(std::size_t worker, Mark what) const;
  /// Whether all but silent workers, and those of `lost`, have said so.
  bool all_have_concluded(const std::vector<int>& lost) const;
  bool all_have_reported(const std::vector<int>& lost) const;  ///< saved or unsaved

  /// All records as this worker knows them, and another worker's knowledge of those `not_here`.
  void copy_to(std::span<std::uint64_t> words) const;
  void take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here);

 private:
  struct Settled {
    std::uint64_t number = 0;
    std::int64_t round = 0;
  };
  AgreementRecord& own() const { return *records_[static_cast<std::size_t>(rank_)]; }
  std::uint64_t newest_wanted(Request what) const;
  Settled newest_settled(Request what) const;
  Settled answer_of(std::size_t worker, Request what) const;
  std::uint64_t handled(Request what) const { return what == Request::save ? saved_ : 0; }
  bool is_running(std::size_t worker) const;
  bool is_silent(std::size_t worker) const;
  template <class Condition>
  bool all_but(const std::vector<int>& lost, const Condition& condition) const;
  void listen(double elapsed_s);
  void answer(Request what);
  void settle(Request what);
  bool is_due(Request what, std::int64_t rounds) const;
  bool holds(Request what, std::int64_t round) const;

  std::vector<AgreementRecord*> records_;
  int rank_;
  bool exact_;
  double silent_after_s_;
  double time_s_ = 0;  ///< of this worker's own ticks
  struct Sign {
    std::uint64_t beat = 0;
    double at_s = 0;
  };
  std::vector<Sign> signs_;            ///< of life, by worker
  std::optional<std::int64_t> begun_;  ///< the round under way; before the first, none is bounded
  std::int64_t ahead_ = 0;
  std::uint64_t saved_ = 0;  ///< number of the latest checkpoint taken
};

}  // namespace fast::train
