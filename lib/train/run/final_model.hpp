// How a run ends: with all workers, with some of them, or early to go on another time.
#pragma once

#include <string>
#include <vector>

#include "train/record/worker_reports.hpp"
#include "train/run/checkpoint_schedule.hpp"
#include "train/run/evaluation.hpp"
#include "train/run/replica.hpp"
#include "train/run/training_loop.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

/// Waits for all workers, brings the replicas together, tests them and saves the mean model.
class RunEnd {
 public:
  RunEnd(const RunPlan& plan, Replica& replica, Evaluator& evaluator, BestModel& best,
         RunCheckpoint& checkpoint, LoopFigures figures);

  /// After the loop. Collective as long as no worker is lost.
  Summary summary();

 private:
  Summary end_with_survivors();
  Summary end_together();
  Summary end_alone();
  Summary end_early();
  void close();
  void reduce(bool with_mean = true);
  Report report(const AlignedBuffer& model);
  std::string save(const AlignedBuffer& model);
  /// Whether collective calls would wait for workers that are gone.
  bool is_alone() const {
    return failed_together_ || !lost_.empty() || !left_.empty() || !replaced_.empty() ||
           !joined_.empty();
  }
  /// Lost or left.
  std::vector<int> gone() const;
  void note_gone(const std::vector<int>& given_up);
  bool is_first_left() const;
  std::string reason(std::string unsaved);
  void describe_run(Summary& summary) const;

  const RunPlan& plan_;
  Replica& replica_;
  Evaluator& evaluator_;
  BestModel& best_;
  RunCheckpoint& checkpoint_;
  LoopFigures figures_;
  WorkerStats stats_;  ///< of training, without the closing rounds
  std::int64_t closing_rounds_ = 0;
  AlignedBuffer mean_;            ///< once it is known, that of the weights at the end
  double distance_ = 0;           ///< of the same weights
  bool failed_together_ = false;  ///< a collective call has failed: no other one is made
  std::vector<int> lost_;         ///< workers that died or were silent to the end
  std::vector<int> left_;         ///< workers that have left as they were asked to
  std::vector<int> replaced_;     ///< seats that spares have taken
  std::vector<int> joined_;       ///< workers that have joined
  bool cut_ = false;              ///< some worker was stopped: the run ends early
};

}  // namespace fast::train
