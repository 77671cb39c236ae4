// The figures of a run's workers, and the summary that they add up to.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/measure.hpp>
#include <fast/exchange/group.hpp>
#include <fast/train/summary.hpp>
#include <fast/worker/worker.hpp>

#include <vector>

#include "train/overview.hpp"

namespace fast::train {

/// What each worker tells the others at the end.
struct ReportFigures {
  double loop_s, reduce_s, bytes_per_round, samples, rounds, epochs, reductions;
  double replica_accuracy, mean_model_correct, mean_model_loss_sum;
  double mean_model_samples;  ///< of the loss: those that could be read
};
struct Report : ReportFigures {
  /// Of training. Others get what add_up() uses.
  WorkerStats worker;
  /// Of other tasks than a classifier's: the mean model's on this worker's part of the test
  /// samples, and those of the worker's own model on all of them. They are told apart by name: a
  /// part of the samples may lack some, and may have another order.
  std::vector<Measure> mean_model, replica;
};

/// Collective. By rank. Where some workers have measures and others have none, as of different
/// backends, and for two forms of one name, there are none: the accuracy is what all know.
std::vector<Report> gather(const Group& group, const Deadline& deadline, const Report& mine);

/// Fills in what follows from the workers' reports. `test_samples`: with those that could not be
/// read.
void add_up(const std::vector<Report>& reports, double test_samples, Summary& summary);

/// Fills in what the run is.
void describe(const Overview& overview, Summary& summary);

}  // namespace fast::train
