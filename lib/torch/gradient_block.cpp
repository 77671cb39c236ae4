#include "torch/gradient_block.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace fast::torch {
namespace {

/// Of parameters in a row: their size, where all are of one type.
std::size_t alignment(const std::vector<TensorView>& views) {
  const bool same = std::all_of(views.begin(), views.end(), [&](const TensorView& view) {
    return view.dtype == views.front().dtype;
  });
  return same ? 1 : sizeof(double);
}

}  // namespace

GradientBlock::GradientBlock(std::vector<at::Tensor> parameters,
                             const std::vector<TensorView>& views)
    : parameters_(std::move(parameters)),
      views_(views.begin(), views.begin() + static_cast<std::ptrdiff_t>(parameters_.size())) {
  const std::size_t each = alignment(views_);
  std::size_t size_bytes = 0;
  for (const TensorView& view : views_) size_bytes += round_up(view.size_bytes(), each);
  block_ = AlignedBuffer(size_bytes);
  std::byte* place = block_.data();
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i];
    views_[i].data = place;
    place += round_up(views_[i].size_bytes(), each);
    copies_.push_back(at::from_blob(views_[i].data, parameter.sizes(), parameter.strides(),
                                    parameter.options().device(c10::kCPU).requires_grad(false)));
  }
}

void GradientBlock::hand_out(const GradientHook& hook) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    copies_[i].copy_(parameter.grad());
  }
  hook(views_);
  for (std::size_t i = 0; i < views_.size(); ++i) parameters_[i].grad().copy_(copies_[i]);
}

}  // namespace fast::torch
