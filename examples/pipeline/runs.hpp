// The same training twice: with the model of each replica in stages, and whole.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/data/loader.hpp>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/pipeline.hpp"
#include "pipeline/settings.hpp"

namespace pipeline {

/// How the world's ranks divide the model. Throws Error(argument) if their number is no multiple of
/// the stages, or if a cut is no layer.
Plan plan_of(const fast::mpi::Communicator& world, const Settings& settings);

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
  /// Collective over the world. Throws as plan_of().
  SplitRun(const fast::mpi::Communicator& world, const Settings& settings, const Task& task);

  int replica() const { return replica_; }
  int replicas() const { return worker_.size(); }
  bool is_last_stage() { return pipeline_.stage().is_last(); }

  /// One step; in the last stage of a replica, its loss. If another stage of this replica is gone,
  /// this worker leaves training: its weights no longer count, and why_left() says why. Rules that
  /// average over all workers allow no leaving: then the error is thrown, and the run ends.
  std::optional<double> step();
  const std::string& why_left() const { return why_left_; }

  /// Replicas all of whose stages are still there when training is over. If a stage of this
  /// replica is gone, why_left() says so.
  struct Finish {
    bool all = true;       ///< nobody is lost
    bool is_first = true;  ///< no replica with a lower number is there
  };
  Finish finish();

  /// After finish(): the mean model of this stage, in place of this worker's own weights.
  void take_mean_model();
  Pipeline& pipeline() { return pipeline_; }

 private:
  SplitRun(const fast::mpi::Communicator& world, const Settings& settings, const Task& task,
           const Plan& plan);
  void leave(const fast::Error& reason);
  [[noreturn]] void fail_together();

  int replica_;
  fast::StepOptions options_;
  fast::Seconds pause_;
  fast::Group group_;  ///< of this stage's workers
  Pipeline pipeline_;
  fast::data::Loader loader_;
  fast::Worker worker_;
  std::size_t made_ = 0;  ///< steps
  std::string why_left_;
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
