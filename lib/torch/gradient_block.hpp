// Gradients of a module in one run of memory, for a function that averages them over workers.
#pragma once

#include <ATen/core/Tensor.h>

#include <fast/backend/backend.hpp>
#include <fast/core/memory.hpp>
#include <vector>

namespace fast::torch {

class GradientBlock {
 public:
  /// `views`: of the parameters, in their order.
  GradientBlock(std::vector<at::Tensor> parameters, const std::vector<TensorView>& views);

  /// Copies the gradients of the parameters into the block, calls the hook with views of them, and
  /// copies them back. A parameter without a gradient has one of zeros.
  void hand_out(const GradientHook& hook);

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> copies_;  ///< in the block
  std::vector<TensorView> views_;
  AlignedBuffer block_;
};

}  // namespace fast::torch
