// The state of LibTorch's optimizers as tensor views, to be saved and resumed.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <map>
#include <vector>

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace fast::torch {

/// State that there would be after the first step, as zeros, so that it can be read and written
/// before: the first step gives the same values either way. Momentum of SGD without dampening, and
/// the moments and steps of Adam and AdamW without amsgrad, in host memory.
class OptimizerState {
 public:
  /// `views`: of the module's parameters, in their order.
  OptimizerState(::torch::optim::Optimizer& optimizer, const ::torch::nn::Module& module,
                 const std::vector<TensorView>& views);
  const std::vector<TensorView>& views() const { return views_; }

 private:
  template <class State>
  void add_moments(const TensorView& view, State& state, const at::Tensor& parameter);
  void add(const char* prefix, const TensorView& view, at::Tensor& tensor,
           const at::Tensor& parameter);

  std::vector<TensorView> views_;
};

}  // namespace fast::torch
