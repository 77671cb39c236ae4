// What a module is trained for: the loss of its outputs, and the measures of an evaluation.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>
#include <fast/core/measure.hpp>
#include <fast/torch/backend.hpp>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace fast::torch {

// Calls into LibTorch and the caller's code, whose errors become one line.

inline std::string text_of(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

/// The result of `call`. Throws Error(argument) with the first line of an error of LibTorch. `what`
/// names the call. `with()` returns the shapes, for the message.
template <class With, class Call>
std::invoke_result_t<const Call&> in_one_line(const char* what, const With& with,
                                              const Call& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    fail(ErrorKind::argument, "torch: {} failed{}: {}", what, with(),
         text.substr(0, text.find('\n')));
  }
}

/// The same for a function of the caller that gets outputs and targets.
template <class Call>
std::invoke_result_t<const Call&> calling_own(const char* what, const at::Tensor& outputs,
                                              const at::Tensor& targets, const Call& call) {
  const auto shapes = [&] {
    return fmt::format(" with outputs {} and targets {}", text_of(outputs.sizes()),
                       text_of(targets.sizes()));
  };
  return in_one_line(what, shapes, call);
}

// A part of a batch as LibTorch's tensors: samples `first` to `first + count`.

/// Inputs [count x sample shape] of the type and on the device of `like`. `sample_shape`: empty for
/// the shape of the batch. Throws Error(argument) for an empty batch and for values that do not
/// have this shape.
at::Tensor inputs_of(const Batch& batch, std::size_t first, std::size_t count,
                     const std::vector<std::int64_t>& sample_shape, const at::Tensor& like);

/// Class labels in a row, on the device of the logits [labels x classes]. Throws Error(argument)
/// for float targets, logits of another shape and labels that are no class.
at::Tensor labels_of(const Batch& batch, std::size_t first, std::size_t count,
                     const at::Tensor& logits);

/// Float targets in the shape and type of the outputs. `binary`: from 0 to 1, labels serve, too.
/// Throws Error(argument) for other targets, and for another number of outputs than targets.
at::Tensor targets_of(const Batch& batch, std::size_t first, std::size_t count,
                      const at::Tensor& outputs, bool binary);

/// What a sample has, unchanged: labels, or targets of the outputs' type, on their device.
at::Tensor as_given(const Batch& batch, std::size_t first, std::size_t count,
                    const at::Tensor& outputs);

/// Logits and labels, one row each, or outputs and targets.
struct Outputs {
  at::Tensor values, targets;
  bool per_step = false;  ///< the batch has targets for each step
  at::Tensor mixed = {};  ///< labels, see Batch::mixed_labels
  double share = 1;       ///< of the targets then
};

/// How many labels have the largest logit.
std::size_t correct_in(const Outputs& found);

/// The loss and the measures of the options.
class Objective {
 public:
  /// Throws Error(argument) for a delta of the huber loss that is not above 0, for a smoothing out
  /// of [0, 1), and for smoothing or weights of classes with another loss than cross_entropy.
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
  at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels) const;
  at::Tensor own_loss_of(const at::Tensor& outputs, const at::Tensor& targets) const;
  std::vector<Measure> class_measures(const Outputs& found) const;

  Loss loss_;
  double huber_delta_, label_smoothing_;
  std::vector<double> class_weights_;
  LossFunction own_loss_;
  MeasureFunction own_measures_;
};

}  // namespace fast::torch
