// The adapter between the Trainer and whatever framework computes losses and gradients. A loop of
// one's own needs none: a Worker takes TensorViews. fast/testing/conformance.hpp proves an adapter.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/measure.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fast {

/// The backend calls it between the backward pass and the optimizer's step. It gets views of the
/// gradients, one a parameter, in the order of parameters(). It may change their values (averaging,
/// clipping).
using GradientHook = std::function<void(const std::vector<TensorView>& gradients)>;

/// Sums over the samples of a batch. They add up over batches.
struct Evaluation {
  double loss_sum = 0;
  std::size_t correct = 0;  ///< samples whose largest output is their label's
  /// The measures of the task, the most important one first; see require_valid(). If there are
  /// none, a task with one class label a sample is measured by its accuracy, `correct` divided by
  /// the number of samples. Other tasks are measured by their mean loss.
  std::vector<Measure> measures = {};

  void add(const Evaluation& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    fast::add(measures, other.measures);
  }
};

/// A step in two halves, on weights that live in a Worker's slots (RotatingArena) in
/// place of the replica's own memory.
class SlotStep {
 public:
  virtual ~SlotStep() = default;
  /// Gradients at `weights`, all parameters in their order, which are only read; returns the mean
  /// loss.
  virtual double find_gradients(const void* weights, const Batch& batch) = 0;
  /// Adds the optimizer's step to weights [first, first + count); each once after find_gradients().
  /// Several WorkerOptions::mixing_threads call it at once, for parts that do not overlap.
  virtual void add_step(std::size_t first, void* weights, std::size_t count) = 0;
};

/// A replica with its optimizer. One worker owns it; no member is thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The framework's name, for messages and summaries.
  virtual std::string name() const = 0;

  /// Views of all parameters that train, and of all buffers, in host memory (a mirror of it where
  /// the framework computes elsewhere). Memory, names and order stay as they are for the adapter's
  /// life. Between calls the views hold the weights: what is written there is what the next call
  /// computes with.
  virtual std::vector<TensorView> parameters() = 0;

  /// One optimizer step on a batch; returns the mean loss over its samples (before the step).
  /// Throws Error(argument), as evaluate() does, when the batch does not fit the model.
  virtual double train(const Batch& batch, const GradientHook& hook = {}) = 0;

  /// Forward pass only, in evaluation mode. Changes neither parameters nor buffers.
  virtual Evaluation evaluate(const Batch& batch) = 0;

  /// The learning rate of the steps to come.
  virtual void set_learning_rate(double learning_rate) = 0;

  /// Views of the optimizer's state (momentum), for checkpoints; may be empty.
  virtual std::vector<TensorView> optimizer_state() { return {}; }

  /// Samples of the batch of the latest train() or SlotStep::find_gradients() whose largest output
  /// was their label's, before the step. It is empty where it is not known, and for other tasks.
  /// The Trainer asks after every step whose figures are wanted.
  virtual std::optional<std::size_t> correct_in_step() { return {}; }

  /// The Euclidean norm of the gradients of that step, over all parameters: after the hook, before
  /// clipping. Empty where it is not known. It may take a pass over the gradients: the Trainer asks
  /// once an epoch.
  virtual std::optional<double> gradient_norm() { return {}; }

  /// train() and SlotStep::find_gradients() heed Batch::mixed_labels.
  virtual bool takes_mixed_labels() const { return false; }

  /// Null where it cannot, as with buffers. Else parameters() are of one type and one in memory.
  virtual SlotStep* in_slots() { return nullptr; }

  /// Views of the parameters that do not train, for WorkerOptions::frozen. All workers have the
  /// same ones.
  virtual std::vector<TensorView> frozen() { return {}; }
};

}  // namespace fast
