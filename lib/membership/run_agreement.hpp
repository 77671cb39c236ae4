// How workers agree on the round in which all save or stop, or from which on all train at a lower
// rate. Training continues meanwhile, and any worker may be slow, suspended or dead.
//
// There are three independent requests, each a RoundAgreement: to save a checkpoint (number 1, 2,
// ...), to stop (number 1) and to lower the learning rate (number 1, 2, ... of the run). A rank's
// record has its stage, too: running; done (all its rounds made), stopped or left, and in which
// round; and marks that follow later.
//
//   1. request() on any worker.
//   2. advance() on each worker, beside training: it answers. Its bound is the round that it has
//      begun; for a checkpoint, a few rounds later; for a lower rate, the next epoch's beginning.
//   3. advance() on the lowest worker that is running and not silent: once all such workers have
//      answered, it settles on the largest bound.
//   4. take_turn() on each worker, between rounds: the worker holds at its bound until the request
//      is settled. Then it continues to the settled round, where it saves or stops.
//
// Workers with a staleness above 0 need not be in the same round: they never hold, and save or stop
// as soon as the request is settled. Such a worker answers and saves after it has ended, too, until
// all have ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "membership/coordinator.hpp"
#include "membership/rank_map.hpp"
#include "membership/round_agreement.hpp"

namespace fast::membership {

enum class Request { save, stop, lower };

/// One worker's part, which its coordinator advances. Any thread may call.
class RunAgreement final : private Protocol {
 public:
  struct Options {
    bool exact = true;  ///< all save and stop in the same round
    Seconds silent_after{5};
    Seconds deadline{300};
    std::function<bool()> stop_requested{};  ///< called ten times a second by another thread
    std::int64_t reductions = 0;             ///< of the rate, before this program began
  };
  /// `map`: of all ranks.
  RunAgreement(std::shared_ptr<Coordinator> coordinator, std::shared_ptr<const RankMap> map,
               Options options);
  ~RunAgreement();

  /// The next checkpoint, unless it is wanted already; or the run's end.
  void request(Request what);
  /// A lower rate is in force from `round` on at the earliest, as far as this worker is asked from
  /// now on.
  void lower_from(std::int64_t round);
  /// The rate shall be lowered `number` times in all. Where no other worker is to be asked, that is
  /// settled at once.
  void lower(std::int64_t number);
  /// How often the rate is lowered in the round that follows `rounds`. Waits where that round may
  /// not begin before it is known; throws Error(deadline).
  std::int64_t reductions(std::int64_t rounds);
  /// This worker joins a run that has made `rounds` rounds: it takes no part in checkpoints of
  /// earlier ones.
  void join(std::int64_t rounds);
  /// Workers that join in round `grown_in`, which is perhaps yet to come here, begin in round
  /// `begin`. A request that would be settled on a round between is settled on `begin`, if that is
  /// not far.
  void note_newcomers(std::int64_t grown_in, std::int64_t begin);
  /// When `rounds` are made: this worker begins no round before take_turn(), however long that is.
  /// A checkpoint that is asked for now is of this round. Does not wait itself.
  void wait(std::int64_t rounds);
  /// Between rounds, when `rounds` are made. After `go` the worker begins another one. A checkpoint
  /// is of a round up to `ahead` rounds later, so that all workers know of it in time.
  RoundDecision turn(std::int64_t rounds, std::int64_t ahead);
  /// The same, but waits while the turn is `hold`; throws Error(deadline).
  RoundDecision take_turn(std::int64_t rounds, std::int64_t ahead);
  /// When `rounds` are made: a checkpoint that take_turn() would ask for.
  bool save_is_due(std::int64_t rounds) const;
  /// The checkpoint that take_turn() asked for has been taken.
  void saved();
  /// The round of the request that take_turn() has returned.
  std::int64_t round_of(Request what) const { return agreement(what).settled().round; }
  /// Some worker was asked to stop, before the end of training or after it.
  bool stop_is_wanted() const { return stops_.proposed() > 0; }
  /// The workers have agreed in which round all stop.
  bool stop_is_settled() const { return stops_.settled().number > 0; }

  /// This worker makes no further round.
  void end(Stage stage, std::int64_t rounds);
  /// Epoch `number` begins in round `round` of this worker, if the workers do not become more.
  void note_next_epoch(NumberedRound epoch);
  /// Of a worker that comes to `round`: the furthest such epoch of the others. Waits a moment until
  /// news of one that does not begin before that round have come.
  NumberedRound next_epoch(std::int64_t round);
  /// Workers that have left, of all hosts, as far as is known.
  std::vector<int> left() const;
  /// These, those that are given up or silent, and spares that have left their seats.
  std::vector<int> absent() const;
  /// At staleness 0: a worker has made all its rounds, and so has no state of that later round, and
  /// none was asked to stop. A worker that ends early (TrainerOptions::patience) is one.
  bool has_ended_before(std::int64_t round) const;
  /// Waits until every worker has ended and has said whom it has lost, except lost and silent
  /// workers. `lost`: by this worker. Whether any was stopped: the same answer on every worker.
  bool conclude(const std::vector<int>& lost);
  /// After conclude(): workers that this or another worker has lost. As long as no worker falls
  /// silent between its own conclude() and the others', the same on every worker.
  std::vector<int> given_up() const;
  /// After conclude(): tells the others whether this worker has saved, and waits for theirs.
  /// Returns the lowest worker that has not saved; empty: all have.
  std::optional<int> report(bool saved);
  /// Some request is under way.
  bool is_open() const { return saves_.is_open() || stops_.is_open() || lowers_.is_open(); }

 private:
  /// What a worker does at the end; see Mark.
  enum class Step { end, conclude, report };

  void listen() override;
  void advance() override;
  bool is_busy() const override { return is_open() || all_have(Step::end); }

  const RoundAgreement& agreement(Request what) const {
    return what == Request::save ? saves_ : what == Request::stop ? stops_ : lowers_;
  }
  RoundAgreement& agreement(Request what) {
    return what == Request::save ? saves_ : what == Request::stop ? stops_ : lowers_;
  }
  std::uint64_t handled(Request what) const {
    return what == Request::save ? saved_ : what == Request::stop ? 0 : lowered_;
  }
  void propose(Request what);
  bool is_silent(int rank) const;
  bool answers(int rank, Request what) const;
  std::optional<std::int64_t> bound(Request what) const;
  void answer(Request what);
  void settle(Request what);
  std::int64_t with_newcomers(std::int64_t round) const;
  RoundDecision look(std::int64_t rounds, std::int64_t ahead);
  bool is_due(Request what, std::int64_t rounds) const;
  void take_reductions(std::int64_t rounds);
  void require_no_hang(const Deadline& deadline, std::int64_t rounds) const;
  bool lacks(int rank, Step step) const;
  bool all_have(Step step) const;
  void await(Step step, std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Coordinator> coordinator_;  ///< its lock guards all below
  std::shared_ptr<const RankMap> map_;
  Options options_;
  RunRecords records_;
  RoundAgreement saves_, stops_, lowers_;
  bool asked_ = false;                 ///< to stop
  std::optional<std::int64_t> begun_;  ///< the round under way; before the first, none is bounded
  std::int64_t ahead_ = 0;
  std::uint64_t saved_ = 0;                 ///< number of the latest checkpoint taken
  std::uint64_t lowered_;                   ///< how often the rate is lowered here
  std::optional<std::int64_t> lower_from_;  ///< empty before the first epoch
  std::int64_t grown_in_ = 0, newcomers_begin_ = 0;
};

}  // namespace fast::membership
