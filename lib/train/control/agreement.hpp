// How workers agree on the round in which all save or stop. Training continues meanwhile, and any
// worker may be slow, suspended or dead.
//
// There are two independent requests: to save a checkpoint (number 1, 2, ...) and to stop (number
// 1). Each worker has a record. It alone writes the record, and all workers read it, directly or as
// an older copy. Every word of a record only grows, so the larger of two copies is the newer one.
//
//   beat      counts the worker's ticks; a worker is silent when its beat does not change
//   stage     running; done (all its rounds made), stopped or left, and in which round; and marks
//             that follow later
//   wanted    the number of the latest request that the worker knows of
//   answered  that number, and a bound: the worker begins no round after the bound until the
//             request is settled. The bound is the round that the worker has begun; for a
//             checkpoint, a few rounds later
//   settled   that number, and the round in which all save or stop
//
// Events of a request:
//   1. request() on any worker. Its `wanted` grows.
//   2. tick() on each worker, from a thread beside training: it copies `wanted` and answers.
//   3. tick() on the lowest worker that is running and not silent: once all such workers have
//      answered, it settles on the largest bound. No worker has gone past that round.
//   4. take_turn() on each worker, between rounds: the worker holds at its bound until the request
//      is settled. Then it continues to the settled round, where it saves or stops.
// Step 3 leaves out silent workers. When the lowest worker is silent, the next one settles. Then,
// or when parts of a run cannot see each other, there may be two settled rounds: workers that have
// not reached the smaller one take the larger one. Workers with a staleness above 0 need not be in
// the same round: they never hold, and save or stop as soon as the request is settled. Such a
// worker answers and saves after it has ended, too, until all have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/control/agreement_records.hpp"
#include "train/control/life_signs.hpp"

namespace fast::train {

/// What a worker does next.
enum class Turn { go, hold, save, stop };

/// What a worker does at the end; see Mark.
enum class Step { end, conclude, report };

/// One worker's part. Not for several threads at once.
class Agreement {
 public:
  /// exact: all save and stop in the same round.
  Agreement(AgreementRecords records, bool exact, double silent_after_s)
      : records_(std::move(records)),
        exact_(exact),
        signs_(records_.all().size(), records_.rank(), silent_after_s) {}
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// What has been agreed on and what workers say of themselves.
  AgreementRecords& records() { return records_; }
  const AgreementRecords& records() const { return records_; }

  /// The next checkpoint, unless it is wanted already; or the run's end.
  void request(Request what);
  /// `elapsed_s`: the time since the last tick, as far as this worker was running.
  void tick(double elapsed_s);
  /// This worker joins a run that has made `rounds` rounds: it takes no part in checkpoints of
  /// earlier ones.
  void join(std::int64_t rounds);
  /// Workers that join in round `grown_in`, which is perhaps yet to come here, begin in round
  /// `begin`. A request that would be settled on a round between is settled on `begin`, if that is
  /// not far.
  void note_newcomers(std::int64_t grown_in, std::int64_t begin) {
    grown_in_ = grown_in;
    newcomers_begin_ = begin;
  }
  /// When `rounds` are made: this worker begins no round before take_turn(), however long that is.
  /// A checkpoint that is asked for now is of this round.
  void wait(std::int64_t rounds);
  /// Between rounds, when `rounds` are made. After `go` the worker begins another one. A checkpoint
  /// is of a round up to `ahead` rounds later, so that all workers know of it in time.
  Turn take_turn(std::int64_t rounds, std::int64_t ahead);
  /// When `rounds` are made: a checkpoint that take_turn() would ask for.
  bool save_is_due(std::int64_t rounds) const { return is_due(Request::save, rounds); }
  /// The checkpoint that take_turn() asked for has been taken.
  void saved();
  /// The round of the request that take_turn() has returned.
  std::int64_t round_of(Request what) const { return records_.newest_settled(what).round; }

  bool is_silent(std::size_t worker) const { return signs_.is_silent(worker); }
  /// Some request is under way: ticks should follow quickly.
  bool is_busy() const;
  /// Whether all workers have, except those that are given up and those that are silent.
  bool all_have(Step step) const;
  /// Gives up those that have not.
  void give_up_without(Step step);

 private:
  std::uint64_t handled(Request what) const { return what == Request::save ? saved_ : 0; }
  std::optional<std::int64_t> bound(Request what) const;
  void answer(Request what);
  void settle(Request what);
  std::int64_t with_newcomers(std::int64_t round) const;
  bool is_due(Request what, std::int64_t rounds) const;
  bool holds(Request what, std::int64_t round) const;

  AgreementRecords records_;
  bool exact_;
  LifeSigns signs_;
  std::optional<std::int64_t> begun_;  ///< the round under way; before the first, none is bounded
  std::int64_t ahead_ = 0;
  std::uint64_t saved_ = 0;  ///< number of the latest checkpoint taken
  std::int64_t grown_in_ = 0, newcomers_begin_ = 0;
};

}  // namespace fast::train
