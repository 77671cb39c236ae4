// The Trainer's loop: epochs and rounds, to the end of training.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "train/balance/balancer.hpp"
#include "train/record/run_log.hpp"
#include "train/record/run_metrics.hpp"
#include "train/run/checkpoint_schedule.hpp"
#include "train/run/evaluation.hpp"
#include "train/run/replica.hpp"
#include "train/run/training_batches.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

/// Of one worker.
struct LoopFigures {
  double seconds = 0;
  double samples = 0;
  double all_samples = 0;   ///< of all living workers, if they make as many rounds
  std::int64_t rounds = 0;  ///< made by this program
  bool left = false;        ///< before the end, as it was asked to
  /// Of the learning rate, also before this program began.
  std::int64_t reductions = 0;
};

class TrainingLoop {
 public:
  /// Adapts plan and batches to more workers.
  using Grow = std::function<void()>;
  TrainingLoop(const RunPlan& plan, TrainingBatches& batches, Replica& replica, BestModel& best,
               Balancer& balancer, RunCheckpoint& checkpoint, RunLog& log, Grow grow);

  /// Ends after the last epoch, when the run is stopped, when it gets no better, or when this
  /// worker leaves.
  LoopFigures run();

 private:
  bool has_seat() const { return plan_.group.has_seat(); }
  std::vector<int> gone() const;
  int living();
  std::string why_not_to_leave() const;
  bool leaves();
  void begin_epoch();
  void grow();
  std::int64_t steps() const;
  GrowthRounds growth_rounds(std::int64_t next, std::int64_t epoch_rounds) const;
  std::int64_t rounds_of_more() const;
  bool make_up(double rate);
  void make_up_rest();
  void count_damage(const Batch& batch);
  void await_samples();
  void report_wait();
  void run_epoch(int epoch);
  double rate_in(int epoch, std::size_t round, std::int64_t reductions) const;
  void lower_rate(int epoch, std::size_t round);
  double largest_rate_before(int epoch, std::size_t round) const;
  void run_round(int epoch, std::size_t round);
  void after_round(int epoch, std::size_t round);
  std::optional<Score> validate(int epoch);
  void report_no_loss(const RunLog::Trained& trained);
  void show(int epoch, std::size_t round);
  std::optional<double> round_s() const;

  const RunPlan& plan_;
  TrainingBatches& batches_;
  Replica& replica_;
  BestModel& best_;
  Balancer& balancer_;
  RunCheckpoint& checkpoint_;
  TrainingCursor& position_;
  RunLog& log_;
  Grow grow_;
  int living_ = 0;  ///< workers
  Clock::time_point counted_{};
  LoopFigures figures_;
  EpochSums sums_;
  std::int64_t made_up_ = 0;            ///< batches of workers before on this seat
  double rate_ = 0;                     ///< of the latest step
  std::optional<double> largest_rate_;  ///< of the run's steps; empty before the first one here
  double waited_s_ = 0;                 ///< for samples of a stream
  std::int64_t validated_ = 0;          ///< combinations, at the last epoch's end
  std::size_t skipped_ = 0;             ///< damaged samples of this epoch's batches
  bool had_samples_ = false;            ///< in this epoch
  bool warned_of_damage_ = false, told_of_wait_ = false, told_of_no_loss_ = false;
  bool refused_ = false;  ///< to leave
};

}  // namespace fast::train
