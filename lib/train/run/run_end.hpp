// How a run ends: with all workers, with some of them, or early to go on another time.
#pragma once

#include <string>
#include <vector>

#include "train/run/best_model.hpp"
#include "train/run/evaluator.hpp"
#include "train/run/replica.hpp"
#include "train/run/run_checkpoint.hpp"
#include "train/run/run_plan.hpp"
#include "train/run/run_report.hpp"
#include "train/run/training_loop.hpp"

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
  Summary end_alone(AlignedBuffer model);
  Summary end_early();
  void close();
  AlignedBuffer final_model() const;
  Report report(const AlignedBuffer& model);
  std::string save(const AlignedBuffer& model);
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
  std::vector<int> lost_;  ///< workers that died or were silent to the end
  bool cut_ = false;       ///< some worker was stopped: the run ends early
};

}  // namespace fast::train
