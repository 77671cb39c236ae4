// The same training twice: with the model of each replica in stages, and whole.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/data/loader.hpp>
#include <fast/worker/replicas.hpp>
#include <memory>
#include <optional>

#include "pipeline/pipeline.hpp"
#include "pipeline/settings.hpp"

namespace pipeline {

/// How a replica divides the model. Throws Error(argument) if a cut is no layer.
Plan plan_of(const Settings& settings);

/// A made-up task: images of 28x28 pixels in 10 classes.
struct Task {
  fast::data::Dataset train, test;
};
Task make_task(std::uint64_t seed);

/// Throws Error(argument) when the replicas have no batch of the task's samples.
void check_batches(const fast::mpi::Communicator& world, const Settings& settings,
                   const Task& task);

/// Rank r has stage r % stages of replica r / stages: the stages of a replica are next to each
/// other, usually on one host. The ranks of each stage are workers that average with each other.
class SplitRun {
 public:
  /// Collective over the world. Throws as plan_of() and fast::Replicas.
  SplitRun(const fast::mpi::Communicator& world, const Settings& settings, const Task& task);

  int replica() const { return replicas_.index(); }
  int replicas() const { return replicas_.count(); }

  /// One step; in the last stage of a replica, its loss.
  std::optional<double> step();

  /// Waits until all have trained. True in the first replica of those that are there.
  bool finish();

  /// After finish(): the mean model of this stage, in place of this worker's own weights.
  void take_mean_model() { worker_.mean_model(pipeline_.tensors()); }
  /// Before the program ends: waits until the other stages have all that they were sent.
  void part();
  Pipeline& pipeline() { return pipeline_; }

 private:
  fast::StepOptions options_;
  fast::Seconds pause_;
  Plan plan_;
  fast::Replicas replicas_;
  Pipeline pipeline_;
  fast::data::Loader loader_;
  fast::Worker worker_;
  std::size_t made_ = 0;  ///< steps
};

/// The reference: every rank has the whole model, and computes the same micro-batches.
class WholeRun {
 public:
  /// Collective over the communicator.
  WholeRun(const fast::mpi::Communicator& workers, const Settings& settings, const Task& task);

  double step();
  void finish() { worker_.await_finish(); }

 private:
  fast::StepOptions options_;
  std::unique_ptr<fast::Backend> backend_;
  fast::data::Loader loader_;
  fast::Worker worker_;
  std::size_t made_ = 0;
};

}  // namespace pipeline
