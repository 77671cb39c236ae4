// What a run reports while it trains: a table and a progress bar for people, lines of metrics for
// programs.
#pragma once

#include <fast/core/deadline.hpp>

#include <memory>
#include <optional>
#include <vector>

#include "train/metrics.hpp"
#include "train/progress.hpp"
#include "train/record/log_file.hpp"
#include "train/record/run_events.hpp"
#include "train/record/run_metrics.hpp"
#include "train/run/evaluation.hpp"
#include "train/run/replica.hpp"
#include "train/run/training_cursor.hpp"
#include "train/run/training_setup.hpp"

namespace fast::train {

// What a run is, for its first line of metrics.

/// Rounds that had been made when this program began; 0: none, or the run was not resumed.
struct MadeBefore {
  std::int64_t by_run = 0;     ///< those of the checkpoint, the same for all workers
  std::int64_t by_worker = 0;  ///< those of this worker; a worker that joins has made none
};

/// After complete_overview().
std::vector<Metric> start_facts(const RunPlan& plan, const Replica& replica,
                                const MadeBefore& before);

/// The workers that a worker reads in the first period of the schedule, sorted; of a schedule that
/// never repeats, in its first round.
std::vector<int> neighbors_of(const Schedule& schedule, int worker);

class RunLog {
 public:
  /// Of the epoch so far.
  struct Trained {
    int epoch = 0;                             ///< from 0 on
    std::optional<double> loss = 0;            ///< empty: the epoch had no samples
    double learning_rate = 0;                  ///< of the latest round
    double loop_s = 0;                         ///< in rounds, since this program began
    std::optional<double> accuracy = {};       ///< of the training samples, 0..1
    std::optional<double> gradient_norm = {};  ///< of the latest round
    std::size_t skipped = 0;                   ///< damaged samples of shards, in this epoch
  };

  /// metrics, file: null when the run has no directory.
  RunLog(const RunPlan& plan, Replica& replica, Evaluator& evaluator,
         const TrainingCursor& position, std::shared_ptr<RunMetrics> metrics,
         std::shared_ptr<LogFile> file);

  /// Nobody asks for figures of epochs.
  bool is_silent() const {
    const bool writes = metrics_ && metrics_->is_open();
    return !writes && !progress_ && !plan_.has_observer;
  }
  /// How this worker has come to its seat.
  enum class Beginning { founds, on_seat, joins };
  /// Prints the overview where progress is wanted.
  void start(Beginning how);
  void begin_epoch();
  /// After a round. `samples`: that this worker has trained on since this program began. After the
  /// last round of an epoch, end_epoch() shows the state, with what it measures.
  void show(ProgressState state, double rate, double samples);
  /// The workers have lowered the learning rate from the next round on.
  void lower_rate(double from, double to);
  /// Ends the progress bar.
  void finish();
  /// Within an epoch: tests the mean model and adds a line of metrics.
  void evaluate(const Trained& trained);
  /// The epoch's rounds are over; what follows is not a part of their time.
  void end_rounds();
  /// After end_rounds(). `validated`: on the samples that were held out, if this worker did that.
  void end_epoch(const Trained& trained, const std::optional<Score>& validated);
  /// This worker leaves before the end, as it was asked to.
  void leave(double loop_s);
  /// Not collective.
  void end(const Summary& summary, double loop_s);

 private:
  std::int64_t round() const { return position_.own_rounds(); }
  void warn_of_incomplete_samples() const;
  Score test(const AlignedBuffer& mean_model, int epoch);
  void note_accuracy(ProgressState::Accuracy accuracy, int epoch);
  void close_epoch();
  void report_values(const AlignedBuffer& mean_model, int epoch) const;
  void note(const std::string& text, LogLevel level = LogLevel::info) const;
  std::string result_text() const;
  std::vector<Metric> report_results(const Trained& trained, const Score& mean) const;

  const RunPlan& plan_;
  Replica& replica_;
  Evaluator& evaluator_;
  const TrainingCursor& position_;
  std::shared_ptr<RunMetrics> metrics_;
  std::shared_ptr<LogFile> file_;
  std::optional<Progress> progress_;
  RunEvents events_;
  std::optional<ProgressState::Accuracy> accuracy_;  ///< the latest
  int measured_in_ = 0;                              ///< the epoch, from 0 on
  std::optional<ProgressState> closing_;             ///< of an epoch's last round; to be shown
  Clock::time_point epoch_began_ = Clock::now(), told_{};
};

}  // namespace fast::train
