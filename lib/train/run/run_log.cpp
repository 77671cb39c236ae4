#include "train/run/run_log.hpp"

#include <cstdio>
#include <fast/core/error.hpp>
#include <utility>

namespace fast::train {

RunLog::RunLog(const RunPlan& plan, Replica& replica, Evaluator& evaluator,
               std::optional<MetricsWriter> metrics)
    : plan_(plan), replica_(replica), evaluator_(evaluator), metrics_(std::move(metrics)) {
  if (!plan_.options.progress || plan_.group.rank() != 0) return;
  std::fputs(plan_.overview.to_table().c_str(), stderr);
  progress_.emplace();
}

void RunLog::show(const ProgressState& state) {
  if (progress_) progress_->update(state);
}

void RunLog::finish() {
  if (progress_) progress_->finish();
}

void RunLog::add_line(int epoch, double loss, double loop_s) {
  if (!metrics_) return;
  const data::Dataset part = part_of(plan_.data.test, plan_.group.rank(), plan_.group.size());
  const Evaluation mean = evaluator_.of(replica_.current_model(), part);
  const WorkerStats stats = replica_.worker().stats();
  write({{"epoch", epoch},
         {"round", stats.rounds},
         {"train_loss", loss},
         {"mean_model_test_correct", mean.correct},
         {"mean_model_test_samples", part.size()},
         {"mean_model_test_loss_sum", mean.loss_sum},
         {"consensus_distance", plan_.all_reduces() ? 0 : replica_.worker().consensus_distance()},
         {"seconds", loop_s},
         {"elapsed_seconds", Seconds(Clock::now() - began_).count()},
         {"wait_seconds", stats.wait_s + replica_.step().reduce_s()},
         {"publish_seconds", stats.publish_s},
         {"mix_seconds", stats.mix_s}});
}

void RunLog::write(std::initializer_list<Metric> line) {
  try {
    metrics_->write(line);
  } catch (const Error& error) {
    if (!std::exchange(warned_, true)) {
      plan_.log(LogLevel::warning, fmt::format("worker {}: {}; training goes on without such lines",
                                               plan_.group.rank(), error.what()));
    }
  }
}

}  // namespace fast::train
