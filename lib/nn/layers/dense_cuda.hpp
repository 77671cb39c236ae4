// Dense layers on GPUs.
#pragma once

#include "nn/cuda/library_works.hpp"
#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

template <>
struct GpuPart<nn::Dense> {
  template <class V>
  using Works = WorkList<MatrixProduct, ColumnShares<V>, ColumnTotals, RectifyGradients<V>>;
  static constexpr bool takes_relu = true;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Dense& dense, const Ends& ends,
                     const Values<V>& x, bool relu) {
    const Index inputs = ends.in.back(), units = dense.units,
                count = build.samples() * elements_of(ends.in) / inputs;
    const Index w = build.parameters(units * inputs), b = build.parameters(units);
    const Values<V> packed =
        is_exact<V> ? nullptr : converted(build, build.weights(w), units * (inputs + 1));
    const Values<V> y = build.values(count * units);
    const void* matrix = is_exact<V> ? static_cast<const void*>(build.weights(w)) : packed.get();
    const void* bias =
        is_exact<V> ? static_cast<const void*>(build.weights(b)) : packed.get() + units * inputs;
    build.add(MatrixProduct{units, count, inputs, false, false, matrix, x.get(), y.get(), bias,
                            relu, type_of<V>, type_of<V>});
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      const Values<V> grads = rectified(build, y, dy, count * units, relu);
      build.add(MatrixProduct{inputs, units, count, true, true, x.get(), grads.get(),
                              build.gradients(w), nullptr, false, type_of<V>, DType::f32});
      add_column_sums(build, grads.get(), count, units, build.gradients(b));
      if (!wanted) return nullptr;
      Values<V> dx = build.values(count * inputs);
      build.add(MatrixProduct{inputs, count, units, true, false, packed ? packed.get() : matrix,
                              grads.get(), dx.get(), nullptr, false, type_of<V>, type_of<V>});
      return dx;
    };
    return {y, backward, true};
  }
};

}  // namespace fast::cuda
