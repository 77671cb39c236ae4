// Convolutions of images on GPUs.
#pragma once

#include "cuda/layers/convolution.hpp"

namespace fast::cuda {

template <>
struct GpuPart<nn::Conv2d> {
  template <class V>
  using Works = ConvolutionWorks<V>;
  static constexpr bool takes_relu = true;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Conv2d& conv, const Ends& ends,
                     const Values<V>& x, bool relu) {
    const ConvolutionShape shape{build.samples(), ends.in[0],   ends.in[1],  ends.in[2],
                                 ends.out[0],     ends.out[1],  ends.out[2], conv.kernel,
                                 conv.stride,     conv.padding, type_of<V>};
    return add_convolution(build, shape, conv.bias, x, relu);
  }
};

}  // namespace fast::cuda
