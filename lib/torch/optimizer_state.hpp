// The state of LibTorch's optimizers as tensor views, to be saved and resumed.
#pragma once

#include <ATen/core/Tensor.h>

#include <fast/core/tensor_view.hpp>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace fast::torch {

/// State that there would be after the first step, as zeros, so that it can be read and written
/// before: the first step gives the same values either way. Momentum of SGD without dampening, and
/// the moments and steps of Adam and AdamW without amsgrad. Views are of host memory: tensors on
/// another device have a copy there.
class OptimizerState {
 public:
  /// `views`: of the module's parameters that train, in their order. `mirror`: tensors in host
  /// memory have a copy, too.
  OptimizerState(::torch::optim::Optimizer& optimizer, const ::torch::nn::Module& module,
                 const std::vector<TensorView>& views, bool mirror);
  /// The state at this call. Values that are written there count from the next to_optimizer() on.
  const std::vector<TensorView>& views();
  /// Before each step of the optimizer.
  void to_optimizer();

 private:
  template <class State>
  void add_moments(const TensorView& view, State& state, const at::Tensor& parameter);
  void add(const char* prefix, const TensorView& view, at::Tensor& tensor,
           const at::Tensor& parameter);
  void* host_place(const at::Tensor& state);

  bool mirror_;
  std::vector<TensorView> views_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  ///< of the first in host memory
  bool shown_ = false;                                     ///< the copies are newer
};

}  // namespace fast::torch
