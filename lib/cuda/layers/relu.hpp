// ReLU on GPUs.
#pragma once

#include "cuda/layers/shared.hpp"

namespace fast::cuda {

template <>
struct GpuPart<nn::Relu> {
  template <class V>
  using Works = WorkList<Rectify<V>, RectifyGradients<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Relu&, const Ends& ends, const Values<V>& x,
                     bool) {
    const Index count = build.samples() * elements_of(ends.in);
    const Values<V> y = build.values(count);
    build.add(Rectify<V>{x.get(), y.get(), count});
    return {y, [=, &build](const Values<V>& dy, bool wanted) {
              return wanted ? rectified(build, y, dy, count, true) : nullptr;
            }};
  }
};

}  // namespace fast::cuda
