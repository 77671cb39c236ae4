// Lets the workers agree when all save or stop: an Agreement in memory that the workers of a host
// share, messages to workers of other hosts, and a thread that advances it beside training.
#pragma once

#include <condition_variable>
#include <fast/exchange/group.hpp>
#include <functional>
#include <mutex>

#include "exchange/gossip.hpp"
#include "exchange/ticker.hpp"
#include "train/control/agreement.hpp"
#include "train/control/ranks_of_workers.hpp"

namespace fast::train {

class RunControl {
 public:
  struct Options {
    bool exact = true;  ///< all save and stop in the same round
    Seconds silent_after{5};
    Seconds deadline{300};
    std::function<bool()> stop_requested;  ///< called ten times a second by another thread
  };
  /// Collective over all ranks, spares among them.
  RunControl(const Group& group, Options options);
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  /// See Agreement::join().
  void join(std::int64_t rounds);
  /// See Agreement::note_newcomers().
  void note_newcomers(std::int64_t grown_in, std::int64_t begin);
  /// This worker wants a checkpoint of all workers.
  void request_save();
  /// See Agreement::wait(). Does not wait itself.
  void wait(std::int64_t rounds);
  /// See Agreement::take_turn(). Waits while the turn is `hold`; throws Error(deadline).
  Turn take_turn(std::int64_t rounds, std::int64_t ahead);
  /// See Agreement::save_is_due().
  bool save_is_due(std::int64_t rounds) const;
  void saved();
  std::int64_t round_of(Request what) const;
  /// Some worker was asked to stop, before the end of training or after it.
  bool stop_is_wanted() const;
  /// The workers have agreed in which round all stop.
  bool stop_is_settled() const;
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
  /// Of a worker that ends before the others: waits until workers of other hosts must have heard
  /// that, a second.
  void spread_news();
  /// Waits until every worker has ended and has said whom it has lost, except lost and silent
  /// workers. `lost`: by this worker. Whether any was stopped: the same answer on every worker.
  bool conclude(const std::vector<int>& lost);
  /// After conclude(): workers that this or another worker has lost. As long as no worker falls
  /// silent between its own conclude() and the others', the same on every worker.
  std::vector<int> given_up() const;
  /// After conclude(): tells the others whether this worker has saved, and waits for theirs.
  /// Returns the lowest worker that has not saved; empty: all have.
  std::optional<int> report(bool saved);

 private:
  bool tick(Seconds elapsed);
  void look_for_stop();
  void receive_news();
  void await(Step step, std::unique_lock<std::mutex>& lock);

  Group group_;  ///< of all ranks
  RanksOfWorkers ranks_;
  Options options_;
  Region region_;
  exchange::Gossip news_;     ///< the ticker's
  bool asked_ = false;        ///< to stop
  mutable std::mutex mutex_;  ///< guards agreement_
  std::condition_variable changed_;
  Agreement agreement_;
  exchange::Ticker ticker_;  ///< declared last: it uses all others
};

}  // namespace fast::train
