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

/// The loss that a module is trained with. For cross_entropy, outputs are logits: [count x classes]
/// for one label a sample, or [count x steps x classes] for a label a step. The others compare each
/// output with a target: mse, huber, and binary_cross_entropy of logits, which also takes labels 0
/// and 1. The definitions and measures are those of nn::Loss.
enum class Loss { cross_entropy, mse, huber, binary_cross_entropy };

/// A loss of your own: one number with a gradient, the mean over the samples. `targets` are those
/// of the batch, on the device of the outputs. They are labels as i64, or numbers of the outputs'
/// element type. Their shape is [count] for one a sample, else [count x target shape].
using LossFunction =
    std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)>;

/// Measures of your own, as sums over the samples. The function gets what the loss gets. For a
/// LossFunction these are the tensors above; for cross_entropy they are a row of logits and a label
/// each. Otherwise the targets have the shape of the outputs. It is called without gradients.
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
  double huber_delta = 1;  ///< positive
  /// Of cross_entropy in training, see nn::LossSpec: [0, 1), and one a class or none.
  double label_smoothing = 0;
  std::vector<double> class_weights = {};
  LossFunction own_loss = {};  ///< in place of `loss`
  /// Measures in place of those of the loss. Without them, an own loss is measured by the accuracy
  /// if outputs are [count x classes], with 2 classes or more and one label a sample. Otherwise it
  /// is measured by its mean.
  MeasureFunction own_measures = {};
  /// Of the module's device, as cuda::accelerator() makes one: the backend is a DeviceReplica, so
  /// that the Trainer averages there. Null: a module on a device is averaged in its mirror.
  std::shared_ptr<Accelerator> accelerator = nullptr;
};

/// Trains with the loss of the options. The optimizer has been given the module's parameters. Its
/// rule and state are its own, and set_learning_rate() sets the rate of all its groups. Inputs take
/// the module's element type and device. name() is "torch". optimizer_state() has the momentum of
/// SGD (without dampening), or the moments and steps of Adam and AdamW (without amsgrad). With a
/// mirror it is the state at that call, and values written there before the next train() take
/// effect.
std::unique_ptr<Backend> make_backend(std::shared_ptr<::torch::nn::Module> module, Forward forward,
                                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                                      const ModuleOptions& options = {});

/// Takes a module holder with forward(): torch::nn::Sequential, or one made by TORCH_MODULE.
template <class Holder>
std::unique_ptr<Backend> make_backend(Holder net,
                                      std::shared_ptr<::torch::optim::Optimizer> optimizer,
                                      const ModuleOptions& options = {}) {
  return make_backend(
      net.ptr(), [net](const auto& inputs) mutable { return net->forward(inputs); },
      std::move(optimizer), options);
}

}  // namespace fast::torch
