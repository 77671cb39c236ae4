// Convolutions of sequences on GPUs.
#pragma once

#include "cuda/layers/convolution.hpp"

namespace fast::cuda {

/// Sequences [sample][step][feature] are images of one row.
template <>
struct GpuPart<nn::Conv1d> {
  template <class V>
  using Works = ConvolutionWorks<V>;
  static constexpr bool takes_relu = true;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Conv1d& conv, const Ends& ends,
                     const Values<V>& x, bool relu) {
    const ConvolutionShape shape{
        build.samples(), ends.in[1],  1,           ends.in[0],   ends.out[1], 1,
        ends.out[0],     conv.kernel, conv.stride, conv.padding, type_of<V>,  true};
    return add_convolution(build, shape, conv.bias, x, relu);
  }
};

}  // namespace fast::cuda
