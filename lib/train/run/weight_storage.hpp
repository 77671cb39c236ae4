// Where the weights of a worker's replica live: in the model's memory, on a device, or in the
// worker's slots.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/train/trainer.hpp>
#include <fast/worker/device_replica.hpp>
#include <fast/worker/worker.hpp>

#include <memory>
#include <vector>

#include "train/run/training_step.hpp"

namespace fast::train {

/// The model's memory is that of Backend::parameters(). Whoever reads it calls download() first;
/// whoever writes it calls upload() afterwards.
class WeightStorage {
 public:
  virtual ~WeightStorage() = default;
  /// What the Worker averages.
  virtual std::vector<TensorView> tensors() = 0;
  /// Of the device of tensors(); null: they are in host memory.
  virtual std::shared_ptr<Accelerator> accelerator() { return nullptr; }
  /// A round of the worker on tensors(): a training step and an average. Returns the loss.
  virtual double round(Worker& worker, TrainingStep& step, const Batch& batch,
                       const StepOptions& options);
  /// Copies the weights to the model's memory.
  virtual void download() {}
  /// Copies the model's memory to where the weights live.
  virtual void upload() {}
  /// Ends the worker's training: waits for all workers. Afterwards the weights are in tensors().
  virtual void finish(Worker& worker) { worker.await_finish(); }
};

std::unique_ptr<WeightStorage> host_weights(Backend& backend);
/// When it is destroyed, the model's mirror in host memory is brought up to date.
std::unique_ptr<WeightStorage> device_weights(DeviceReplica& replica);
/// Of a backend with in_slots(). Until finish() the model's memory is not used for training.
std::unique_ptr<WeightStorage> slot_weights(Backend& backend);

/// The home that fits the options. A device is used when it can average with such options.
std::unique_ptr<WeightStorage> weights_home(const TrainerOptions& options, Backend& backend);

}  // namespace fast::train
