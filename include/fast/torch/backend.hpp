// A module of LibTorch with its optimizer behind the adapter that the Trainer drives.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/core/measure.hpp>
#include <fast/torch/replica.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace at {
class Tensor;
}
namespace torch::optim {
class Optimizer;
}

namespace fast::torch {

/// Outputs [count x outputs of a sample] of inputs [count x sample shape].
using Forward = std::function<at::Tensor(const at::Tensor& inputs)>;

/// What a module is trained for. cross_entropy: outputs are logits [count x classes] of one label a
/// sample, or [count x steps x classes] of a label a step. The others compare each output with a
/// target: mse, huber, and binary_cross_entropy of logits, which also takes labels 0 and 1. The
/// definitions and measures are those of nn::Loss.
enum class Loss { cross_entropy, mse, huber, binary_cross_entropy };

/// A loss of your own: one number with a gradient, the mean over the samples. `targets` are what
/// the batch has, on the device of the outputs: labels as i64, or numbers of the outputs' element
/// type; [count] for one a sample, else [count x target shape].
using LossFunction =
    std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)>;

/// Measures of your own, as sums over the samples. Gets what the loss gets: for a LossFunction the
/// tensors above; for cross_entropy a row of logits and a label each; else targets in the shape of
/// the outputs. Called without gradients.
using MeasureFunction =
    std::function<std::vector<Measure>(const at::Tensor& outputs, const at::Tensor& targets)>;

/// How a module is trained.
struct ModuleOptions {
  /// What samples are reshaped to before forward(); empty: what the batch says.
  std::vector<std::int64_t> sample_shape;
  /// Gradients of a larger norm, over all parameters, are scaled down to it; 0: never.
  double clip_norm = 0;
  int accumulate = 1;  ///< parts of a batch taken one after the other
  int threads = 1;     ///< at::set_num_threads, of the whole process; 0: leave it
  ReplicaOptions replica;
  Loss loss = Loss::cross_entropy;
  double huber_delta = 1;      ///< positive
  LossFunction own_loss = {};  ///< in place of `loss`
  /// In place of the measures of the loss. Without them, an own loss is measured by the accuracy if
  /// outputs are [count x classes] of one label a sample, with 2 classes or more, else by its mean.
  MeasureFunction own_measures = {};
};

/// Trains with the loss of the options. The optimizer has been given the module's parameters; its
/// rule and state are its own, set_learning_rate() sets the rate of all its groups. Inputs take the
/// module's element type and device. name() is "torch"; optimizer_state() has momentum of SGD
/// (without dampening) and the moments and steps of Adam and AdamW (without amsgrad). Of a module
/// with a mirror it is the state at that call, and values written there before the next train()
/// take effect.
std::unique_ptr<Backend> make_backend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                                      const ModuleOptions& options = {});

/// The same of a module holder (torch::nn::Sequential, or one by TORCH_MODULE), which has
/// forward().
template <class Holder>
std::unique_ptr<Backend> make_backend(Holder net,
                                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                                      const ModuleOptions& options = {}) {
  return make_backend(
      net.ptr(), [net](const auto& inputs) mutable { return net->forward(inputs); },
      std::move(optimizer), options);
}

}  // namespace fast::torch
