// What convolutions on GPUs have in common.
#pragma once

#include "nn/cuda/library_works.hpp"
#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

template <class V>
using ConvolutionWorks = WorkList<Convolution, MatrixProduct, AddBias<V>, Rectify<V>,
                                  RectifyGradients<V>, ColumnShares<V>, ColumnTotals>;

/// A matrix product of values [sample and place][channel] and kernels computes it.
inline bool is_pointwise(const ConvolutionShape& shape) {
  return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0;
}

/// a, b and out are those of Convolution. Gradients of pointwise kernels are f32.
template <class V>
void add_work(Builder<V>& build, Convolution::Kind kind, const ConvolutionShape& shape,
              const void* a, const void* b, void* out) {
  using Kind = Convolution::Kind;
  if (!is_pointwise(shape)) {
    build.add(Convolution{kind, shape, a, b, out});
    return;
  }
  const Index rows = shape.samples * shape.out_height * shape.out_width;
  const Index channels = shape.channels, filters = shape.filters;
  const DType type = type_of<V>;
  if (kind == Kind::forward)
    build.add(MatrixProduct{filters, rows, channels, false, false, b, a, out, nullptr, false, type,
                            type});
  else if (kind == Kind::filter_grads)
    build.add(MatrixProduct{channels, filters, rows, true, true, a, b, out, nullptr, false, type,
                            DType::f32});
  else
    build.add(
        MatrixProduct{channels, rows, filters, true, false, b, a, out, nullptr, false, type, type});
}

/// The parameters are the kernels [filters][channels][kernel rows][kernel] and, `with_bias`, one
/// bias for each filter.
template <class V>
Made<V> add_convolution(Builder<V>& build, const ConvolutionShape& shape, bool with_bias,
                        const Values<V>& x, bool relu) {
  const Index filters = shape.filters, channels = shape.channels,
              window = shape.kernel_rows() * shape.kernel;
  const Index in_count = shape.samples * shape.height * shape.width * channels,
              out_count = shape.samples * shape.out_height * shape.out_width * filters;
  const Index count = filters * channels * window, w = build.parameters(count);
  const Index b = with_bias ? build.parameters(filters) : -1;
  // nn's order is already the one needed, and the place suits fast kernels.
  const bool as_stored = is_exact<V> && (window == 1 || channels == 1) && w % 4 == 0;
  const Values<V> packed =
      as_stored ? nullptr : swapped(build, build.weights(w), filters, channels, window);
  const Values<V> y = build.values(out_count);
  const void* kernels = as_stored ? static_cast<const void*>(build.weights(w)) : packed.get();
  add_work(build, Convolution::Kind::forward, shape, x.get(), kernels, y.get());
  if (with_bias) build.add(AddBias<V>{y.get(), build.weights(b), filters, out_count, relu});
  if (!with_bias && relu) build.add(Rectify<V>{y.get(), y.get(), out_count});
  const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
    const Values<V> grads = rectified(build, y, dy, out_count, relu);
    const Values<V> own = as_stored || is_pointwise(shape) ? nullptr : build.values(count);
    add_work(build, Convolution::Kind::filter_grads, shape, x.get(), grads.get(),
             own ? static_cast<void*>(own.get()) : build.gradients(w));
    if (own)
      build.add(SwapLast<V, float>{own.get(), build.gradients(w), filters, window, channels});
    if (with_bias)
      add_column_sums(build, grads.get(), out_count / filters, filters, build.gradients(b));
    if (!wanted) return nullptr;
    Values<V> dx = build.values(in_count);
    add_work(build, Convolution::Kind::input_grads, shape, grads.get(),
             packed ? packed.get() : kernels, dx.get());
    return dx;
  };
  return {y, backward, true};
}

// Convolutions of sequences on GPUs.

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

/// Convolutions of images on GPUs.
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
