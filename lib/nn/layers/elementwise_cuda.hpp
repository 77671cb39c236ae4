// Elementwise layers on GPUs: their part follows from their function.
#pragma once

#include "nn/layers/cuda_part.hpp"
#include "nn/layers/function.hpp"

namespace fast::cuda {

/// y = f(x).
template <class V, class Function>
struct Apply {
  Function function;
  const V* x;
  V* y;
  Index count;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float value[Width];
    load(x + e, value);
    for (int i = 0; i < Width; ++i) value[i] = function.value(value[i]);
    store(value, y + e);
  }
};

/// dx = dy·f'(x).
template <class V, class Function>
struct ApplyGradients {
  Function function;
  const V *x, *dy;
  V* dx;
  Index count;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float value[Width], grad[Width];
    load(x + e, value);
    load(dy + e, grad);
    for (int i = 0; i < Width; ++i) grad[i] *= function.derivative(value[i]);
    store(grad, dx + e);
  }
};

template <class Spec>
requires nn::HasFunction<Spec>
struct GpuPart<Spec> {
  using Function = nn::FunctionOf<Spec>;
  template <class V>
  using Works = WorkList<Apply<V, Function>, ApplyGradients<V, Function>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const Spec& spec, const Ends& ends, const Values<V>& x,
                     bool) {
    const Index count = build.samples() * elements_of(ends.in);
    const Function function(spec);
    const Values<V> y = build.values(count);
    build.add(Apply<V, Function>{function, x.get(), y.get(), count});
    return {y, [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
              if (!wanted) return nullptr;
              Values<V> dx = build.values(count);
              build.add(ApplyGradients<V, Function>{function, x.get(), dy.get(), dx.get(), count});
              return dx;
            }};
  }
};

/// ReLU on GPUs.
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
