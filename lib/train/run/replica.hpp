// A worker's model in a run: the Worker that averages it, and its models in host memory.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "combine/accelerator.hpp"
#include "train/record/run_events.hpp"
#include "train/run/training_setup.hpp"
#include "train/run/training_step.hpp"
#include "train/run/weight_storage.hpp"

namespace fast::train {

// The memory of a model that nobody trains yet.

/// Gives the whole pages of these tensors, in private host memory, back to the system. Afterwards
/// their elements are undefined; writing to them takes pages again.
void release_pages(const std::vector<TensorView>& tensors);

// An exponential moving average of a replica's weights.

/// Of f32 and f64 tensors; others keep their newest value. The average is in the memory of the
/// weights: the host's or a device's.
class Ema {
 public:
  /// Begins with the weights as they are; `accelerator` is that of tensors on a device, else null.
  Ema(const ParameterLayout& layout, double decay,
      std::shared_ptr<Accelerator> accelerator = nullptr);

  /// After a step: average ← d average + (1-d) weights. In step t d is at most (1+t)/(10+t), so
  /// that the initial weights count little even in a short run.
  void update(const ParameterLayout& layout);

  const AlignedBuffer& packed();
  /// For checkpoints.
  std::vector<TensorView> state();
  /// To be called when the views of state() have been written to.
  void take_state();

 private:
  void transfer(std::byte* to, const std::byte* from) const;

  double decay_;
  AlignedBuffer average_;  ///< of weights on a device: a copy in host memory
  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<std::byte> on_device_;
  double steps_ = 0;
};

/// Models are packed in one vector each, as layout() has it.
class Replica {
 public:
  /// Called for a neighbor that was left out of a round.
  using OnMissed = std::function<void(int neighbor, std::int64_t round)>;
  /// Collective over all ranks. A spare waits here; without a seat it has no more than a worker().
  Replica(const RunPlan& plan, Backend& backend, OnMissed on_missed);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  /// A training step and an average. Returns the loss. See StepOptions::largest_rate.
  double round(const Batch& batch, double rate, double largest_rate = 0);
  /// A training step without an average, before a round's own step. Weights in the model's memory
  /// only.
  void step_more(const Batch& batch, double rate);
  /// Observers are told rounds of the run from here on: so many have been made.
  void count_events_from(std::int64_t rounds);
  /// One more observer of the rounds from here on: a spare has it once it knows its seat.
  void add_observer(std::shared_ptr<Observer> observer);
  /// Waits for all workers. From then on the weights are the moving average, if there is one.
  void finish();
  /// After finish(): the weights are those of training again, for a run that goes on another time.
  void take_back_trained();
  /// Collective, after finish(). Up to so many rounds of averages only, until stop() is true;
  /// returns how many. Makes another Worker. If that fails, the one of training is still there,
  /// unless its weights are on a device.
  std::int64_t close(std::int64_t rounds, const std::function<bool()>& stop);
  /// True if close() may end without a Worker.
  bool may_lose_worker() const { return worker_->layout().device() != Device{}; }

  AlignedBuffer own_model() const;
  AlignedBuffer mean_model() const;  ///< of what the workers have published
  /// See Worker::reduce_models().
  AlignedBuffer reduced_model(double& distance);
  double reduced_distance();
  /// The mean model while training goes on. Replicas of an all-reduce publish nothing and are
  /// equal.
  AlignedBuffer current_model() const;
  void adopt(const AlignedBuffer& model);
  /// Begins the moving average anew, with the weights as they are.
  void restart_ema();

  Backend& backend() const { return backend_; }
  /// False after a close() that failed; see may_lose_worker().
  bool has_worker() const { return worker_.has_value(); }
  Worker& worker() { return *worker_; }
  const Worker& worker() const { return *worker_; }
  WeightStorage& home() const { return *home_; }
  TrainingStep& step() { return *step_; }
  Ema* ema() { return ema_ ? &*ema_ : nullptr; }
  const ParameterLayout& layout() const { return layout_; }  ///< of the model's host memory

 private:
  WorkerOptions training_options(OnMissed on_missed);

  const RunPlan& plan_;
  Backend& backend_;
  std::unique_ptr<WeightStorage> home_;
  std::shared_ptr<CountedRounds> events_;  ///< null: nobody observes
  std::optional<Worker> worker_;
  ParameterLayout layout_;
  std::optional<TrainingStep> step_;
  std::optional<Ema> ema_;
  AlignedBuffer trained_;  ///< the weights before the moving average took their place
};

}  // namespace fast::train
