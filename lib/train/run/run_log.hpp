// What a run reports while it trains: a table and a progress bar for people, lines of metrics for
// programs.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/train/metrics.hpp>
#include <fast/train/progress.hpp>

#include <optional>

#include "train/run/evaluator.hpp"
#include "train/run/run_plan.hpp"

namespace fast::train {

class RunLog {
 public:
  /// metrics: empty when the run has no directory. Prints the overview where progress is wanted.
  RunLog(const RunPlan& plan, Replica& replica, Evaluator& evaluator,
         std::optional<MetricsWriter> metrics);

  /// After a round.
  void show(const ProgressState& state);
  /// Ends the progress bar.
  void finish();
  /// Tests the mean model and adds a line of metrics. A full disk does not end training: the line
  /// is left out, and the first time there is a warning.
  void add_line(int epoch, double loss, double loop_s);

 private:
  void write(std::initializer_list<Metric> line);

  const RunPlan& plan_;
  Replica& replica_;
  Evaluator& evaluator_;
  std::optional<MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  Clock::time_point began_ = Clock::now();
  bool warned_ = false;
};

}  // namespace fast::train
