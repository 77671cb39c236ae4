// One run of the Trainer: trainer.cpp has its course, results.cpp what it measures and reports.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>
#include <fast/data/loader.hpp>
#include <fast/train/metrics.hpp>
#include <fast/train/overview.hpp>
#include <fast/train/progress.hpp>
#include <fast/train/trainer.hpp>
#include <memory>
#include <vector>

#include "train/ema.hpp"

namespace fast::train {

/// What each worker tells the others when all is done.
struct Report {
  double loop_s, wait_s, publish_s, mix_s, bytes;
  double reads, fresh, messages_sent, messages_held, samples, rounds;
  double replica_accuracy, mean_model_correct;
};

/// The best mean model so far on the validation samples; worker 0's.
struct Best {
  std::int64_t correct = -1;
  int epoch = 0;
  AlignedBuffer packed;
};

class Training {
 public:
  Training(const Group& group, const TopologyRule& rule, Backend& backend, const data::Splits& data,
           const TrainerOptions& options);
  Summary run();

 private:
  std::vector<std::size_t> own_samples() const;
  void look_over(const Schedule& schedule);
  void epoch(int index);
  double train_one(const Batch& batch);
  void average(const std::vector<TensorView>& gradients);
  void await_pace(Clock::time_point step_began, double reduce_s_before) const;
  void validate(int epoch);
  bool stops(int epoch) const;
  void close();
  void log(int epoch, double loss);
  Evaluation evaluate(const data::Dataset& dataset);
  Evaluation evaluate(const AlignedBuffer& model, const data::Dataset& dataset);
  AlignedBuffer mean_model() const;
  AlignedBuffer final_model() const;
  Report report(const AlignedBuffer& model);
  std::vector<Report> gather(const Report& mine) const;
  void adopt(const AlignedBuffer& model);
  Summary summarize();

  Group group_;
  Backend& backend_;
  const data::Splits& data_;
  TrainerOptions options_;
  data::Dataset train_, validation_;
  Best best_;
  std::optional<Ema> ema_;
  Overview overview_;
  std::optional<Schedule> schedule_;  ///< as laid on the ranks
  std::optional<data::Loader> loader_;
  std::optional<MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  std::optional<Worker> worker_;
  std::unique_ptr<Reducer> reducer_;
  WorkerStats stats_;  ///< of training, closing rounds apart
  std::int64_t closing_rounds_ = 0;
  Clock::time_point began_;
  double loop_s_ = 0, reduce_s_ = 0;
  double samples_ = 0;
};

}  // namespace fast::train
