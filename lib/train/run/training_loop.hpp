// The Trainer's loop: epochs and rounds, to the end of training.
#pragma once

#include "train/run/best_model.hpp"
#include "train/run/replica.hpp"
#include "train/run/run_checkpoint.hpp"
#include "train/run/run_log.hpp"
#include "train/run/run_plan.hpp"
#include "train/run/training_batches.hpp"

namespace fast::train {

/// Of one worker.
struct LoopFigures {
  double seconds = 0;
  double samples = 0;
};

class TrainingLoop {
 public:
  TrainingLoop(const RunPlan& plan, TrainingBatches& batches, Replica& replica, BestModel& best,
               RunCheckpoint& checkpoint, RunLog& log);

  /// Ends after the last epoch, when the run is stopped, or when it gets no better.
  LoopFigures run();

 private:
  void run_epoch(int epoch);
  void run_round(int epoch, std::size_t round);
  void after_round(int epoch, std::size_t round);
  void show(int epoch, std::size_t round);
  double mean_loss() const { return loss_sum_ / static_cast<double>(steps_); }
  double round_s() const;
  RunPosition& position() const { return checkpoint_.position(); }

  const RunPlan& plan_;
  TrainingBatches& batches_;
  Replica& replica_;
  BestModel& best_;
  RunCheckpoint& checkpoint_;
  RunLog& log_;
  LoopFigures figures_;
  double loss_sum_ = 0;  ///< of the epoch's steps
  std::size_t steps_ = 0;
};

}  // namespace fast::train
