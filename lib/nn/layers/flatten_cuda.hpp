// Flattening on GPUs.
#pragma once

#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

template <>
struct GpuPart<nn::Flatten> {
  template <class V>
  using Works = WorkList<SwapLast<V, V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Flatten&, const Ends& ends, const Values<V>& x,
                     bool) {
    if (ends.in.size() < 3 || area_of(ends.in) == 1 || ends.in[0] == 1)
      return {x, [](const Values<V>& dy, bool wanted) { return wanted ? dy : nullptr; }};
    return {swapped(build, x.get(), build.samples(), area_of(ends.in), ends.in[0]),
            [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
              return wanted
                         ? swapped(build, dy.get(), build.samples(), ends.in[0], area_of(ends.in))
                         : nullptr;
            }};
  }
};

}  // namespace fast::cuda
