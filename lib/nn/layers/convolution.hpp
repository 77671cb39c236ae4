// What convolutions have in common.
#pragma once

#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

/// The common part of their rows. A layer adds `prefix`, `describe`, `output`, `list_tensors` and
/// `make`.
template <class S>
struct ConvolutionKind {
  using Spec = S;

  static void keys(Spec& conv, Keys& keys) {
    keys.required("channels", conv.channels);
    keys.required("kernel", conv.kernel);
    keys.optional("stride", conv.stride);
    keys.optional("padding", conv.padding);
    keys.optional("bias", conv.bias);
  }
  static Window window(const Spec& conv) { return {conv.kernel, conv.stride, conv.padding}; }
};

}  // namespace fast::nn
