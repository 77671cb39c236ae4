// What a module is trained for: the loss of its outputs, and the measures of an evaluation.
#pragma once

#include <ATen/core/Tensor.h>

#include <fast/core/batch.hpp>
#include <fast/core/measure.hpp>
#include <fast/torch/backend.hpp>
#include <vector>

namespace fast::torch {

/// Logits and labels, one row each, or outputs and targets.
struct Outputs {
  at::Tensor values, targets;
  bool per_step = false;  ///< the batch has targets for each step
};

/// How many labels have the largest logit.
std::size_t correct_in(const Outputs& found);

/// The loss and the measures of the options.
class Objective {
 public:
  /// Throws Error(argument) for a delta of the huber loss that is not above 0.
  explicit Objective(const ModuleOptions& options);

  /// The outputs of samples `first` to `first + count`, beside what the batch has for them.
  Outputs outputs_of(const Batch& batch, std::size_t first, std::size_t count,
                     at::Tensor outputs) const;
  /// The mean over the samples, with a gradient where gradients are enabled.
  at::Tensor loss_of(const Outputs& found) const;
  /// Whether there is a row of logits for each label.
  bool classifies(const Outputs& found) const;
  /// As nn::measures_of(). Empty for few classes, and for an own loss without own measures.
  std::vector<Measure> measures_of(const Outputs& found) const;

 private:
  at::Tensor own_loss_of(const at::Tensor& outputs, const at::Tensor& targets) const;
  std::vector<Measure> class_measures(const Outputs& found) const;

  Loss loss_;
  double huber_delta_;
  LossFunction own_loss_;
  MeasureFunction own_measures_;
};

}  // namespace fast::torch
