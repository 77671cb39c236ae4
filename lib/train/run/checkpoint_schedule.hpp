// When a run saves a checkpoint, and when it stops.
#pragma once

#include <fast/core/deadline.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "membership/periodic_thread.hpp"
#include "membership/run_agreement.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/run/checkpoint_state.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

/// One worker's part: saves its state in the rounds that are due or that the workers agree on, and
/// knows whether the run was stopped.
class RunCheckpoint {
 public:
  /// writer: null when the run saves no checkpoints. joins: this worker joins a run.
  RunCheckpoint(const RunPlan& plan, membership::RunAgreement& agreement, RunState& state,
                std::unique_ptr<CheckpointWriter> writer, bool joins = false);

  bool saves() const { return writer_ != nullptr; }
  TrainingCursor& position() const { return position_; }
  membership::RunAgreement& agreement() const { return agreement_; }

  /// Before a round, of which each takes `round_s`; empty: that is not known. Saves or stops when
  /// the workers have agreed to do so here. False: this worker makes no further round.
  bool may_go_on(const std::optional<double>& round_s);
  bool stopped() const { return stopped_; }
  /// Of the learning rate, in the next round.
  std::int64_t reductions() const;
  /// Before may_go_on() or end(), again and again while this worker makes no round. Saves what is
  /// due.
  void wait();
  /// Saves when that is due by rounds; asks all workers to save when it is due otherwise. In the
  /// round of a growth, note_epoch() saves, so that the checkpoint is of all, those that join too.
  void after_round();

  /// At the beginning of an epoch, and after a growth: tells the others when the next one begins,
  /// and how far worker 0 wants the learning rate lowered.
  void note_epoch(std::int64_t worker_round);
  /// In rounds of the run. See RunAgreement::note_newcomers().
  void note_newcomers(std::int64_t grown_in, std::int64_t begin) {
    if (saves()) agreement_.note_newcomers(grown_in, begin);
  }
  /// Of a worker that has left out a growth: goes to the others' place at that round.
  void come_to_seat(std::int64_t worker_round);
  /// This worker makes no further round; `left`: it leaves the others. Above staleness 0, a thread
  /// saves its state, as it is now, in their checkpoints until conclude().
  void end(bool left);
  /// See RunAgreement::conclude().
  bool conclude(const std::vector<int>& lost);
  /// Waits until the latest checkpoint is written, so that what is saved next is newer.
  void finish();
  /// After finish(): why the run has no checkpoint at all, of any worker; empty: it has one, or
  /// none was due.
  std::string missing() const;
  /// Of a run that was stopped: saves the last checkpoint. Returns why that failed; empty: it is
  /// saved.
  std::string leave();

 private:
  void keep();
  void save(std::int64_t round);
  void save_again();
  void save_settled(membership::Request what);
  bool lacks(std::int64_t round) const { return round != last_saved_ || lacks_last_; }
  bool is_due() const;
  bool is_due_by_time() const;

  const RunPlan& plan_;
  membership::RunAgreement& agreement_;
  RunState& state_;
  TrainingCursor& position_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::int64_t last_saved_;  ///< round; at first that in which the run begins
  /// This worker's own rounds then: a slow one above staleness 0 may not come to last_saved_.
  std::int64_t rounds_at_save_;
  bool lacks_last_;  ///< this worker was not there
  bool has_any_;     ///< the run's directory has a checkpoint to go on from
  Clock::time_point saved_at_ = Clock::now();
  bool stopped_ = false;
  std::optional<membership::PeriodicThread> after_end_;  ///< declared last: it uses all others
};

}  // namespace fast::train
