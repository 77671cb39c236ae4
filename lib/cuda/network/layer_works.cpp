#include "cuda/network/builder.hpp"

namespace fast::cuda {

template <class V>
void Builder<V>::add_column_sums(const V* x, Index rows, Index columns, float* totals) {
  const Shares shares = Shares::of<V>(rows, columns);
  const Sums parts = sums(shares.size());
  add(ColumnShares<V>{x, parts.get(), shares});
  add(ColumnTotals{parts.get(), totals, Shares::of_sums(shares.parts, columns)});
}

template <class V>
auto Builder<V>::layer(const nn::Dense& dense, const Shape& in, const Values& x, bool relu)
    -> Made {
  const Index inputs = in[0], units = dense.units, count = samples_;
  const Index w = parameters(units * inputs), b = parameters(units);
  const Values packed = exact ? nullptr : converted(weights(w), units * (inputs + 1));
  const Values y = values(count * units);
  const void* matrix = exact ? static_cast<const void*>(weights(w)) : packed.get();
  const void* bias = exact ? static_cast<const void*>(weights(b)) : packed.get() + units * inputs;
  add(MatrixProduct{units, count, inputs, false, false, matrix, x.get(), y.get(), bias, relu, type,
                    type});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values grads = rectified(y, dy, count * units, relu);
    add(MatrixProduct{inputs, units, count, true, true, x.get(), grads.get(), gradients(w), nullptr,
                      false, type, DType::f32});
    add_column_sums(grads.get(), count, units, gradients(b));
    if (!wanted) return nullptr;
    Values dx = values(count * inputs);
    add(MatrixProduct{inputs, count, units, true, false, packed ? packed.get() : matrix,
                      grads.get(), dx.get(), nullptr, false, type, type});
    return dx;
  };
  return {y, backward, true};
}

template <class V>
auto Builder<V>::layer(const nn::Conv2d& conv, const Shape& in, const Values& x, bool relu)
    -> Made {
  const Shape out = nn::shapes_through({conv}, in)[1];
  const ConvolutionShape shape{samples_, in[0],       in[1],       in[2],        out[0], out[1],
                               out[2],   conv.kernel, conv.stride, conv.padding, type};
  const Index filters = conv.channels, window = conv.kernel * conv.kernel;
  const Index in_count = samples_ * elements_of(in), out_count = samples_ * elements_of(out);
  const Index count = filters * in[0] * window, w = parameters(count);
  const Index b = conv.bias ? parameters(filters) : -1;
  // [channels] last and before is the same, and the place is one that fast kernels take.
  const bool as_stored = exact && (window == 1 || in[0] == 1) && w % 4 == 0;
  const Values packed = as_stored ? nullptr : swapped(weights(w), filters, in[0], window);
  const Values y = values(out_count);
  const void* kernels = as_stored ? static_cast<const void*>(weights(w)) : packed.get();
  add(Convolution{Convolution::Kind::forward, shape, x.get(), kernels, y.get()});
  if (conv.bias) add(AddBias<V>{y.get(), weights(b), filters, out_count, relu});
  if (!conv.bias && relu) add(Rectify<V>{y.get(), y.get(), out_count});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values grads = rectified(y, dy, out_count, relu);
    const Values own = as_stored ? nullptr : values(count);
    add(Convolution{Convolution::Kind::filter_grads, shape, x.get(), grads.get(),
                    own ? static_cast<void*>(own.get()) : gradients(w)});
    if (own) add(SwapLast<V, float>{own.get(), gradients(w), filters, window, in[0]});
    if (conv.bias) add_column_sums(grads.get(), out_count / filters, filters, gradients(b));
    if (!wanted) return nullptr;
    Values dx = values(in_count);
    add(Convolution{Convolution::Kind::input_grads, shape, grads.get(),
                    packed ? packed.get() : kernels, dx.get()});
    return dx;
  };
  return {y, backward, true};
}

template <class V>
auto Builder<V>::layer(const nn::Relu&, const Shape& in, const Values& x, bool) -> Made {
  const Index count = samples_ * elements_of(in);
  const Values y = values(count);
  add(Rectify<V>{x.get(), y.get(), count});
  return {y, [=, this](const Values& dy, bool wanted) {
            return wanted ? rectified(y, dy, count, true) : nullptr;
          }};
}

template <class V>
auto Builder<V>::layer(const nn::MaxPool& pool, const Shape& in, const Values& x, bool) -> Made {
  const Shape out = nn::shapes_through({pool}, in)[1];
  const PoolShape shape{samples_, in[1],     in[2],       in[0],       out[1],
                        out[2],   pool.size, pool.stride, pool.padding};
  const Values y = values(samples_ * elements_of(out));
  const auto places = memory_.take<std::int32_t>(samples_ * elements_of(out));
  add(PoolMax<V>{x.get(), y.get(), places.get(), shape});
  return {y, [=, this](const Values& dy, bool wanted) -> Values {
            if (!wanted) return nullptr;
            Values dx = values(samples_ * elements_of(in));
            add(PoolMaxGradients<V>{dy.get(), places.get(), dx.get(), shape});
            return dx;
          }};
}

template <class V>
auto Builder<V>::layer(const nn::Flatten&, const Shape& in, const Values& x, bool) -> Made {
  if (in.size() < 3 || area_of(in) == 1 || in[0] == 1)
    return {x, [](const Values& dy, bool wanted) { return wanted ? dy : nullptr; }};
  return {swapped(x.get(), samples_, area_of(in), in[0]),
          [=, this](const Values& dy, bool wanted) -> Values {
            return wanted ? swapped(dy.get(), samples_, in[0], area_of(in)) : nullptr;
          }};
}

template <class V>
auto Builder<V>::layer(const nn::GlobalAveragePool&, const Shape& in, const Values& x, bool)
    -> Made {
  const Values y = values(samples_ * in[0]);
  add(PoolMean<V>{x.get(), y.get(), samples_, area_of(in), in[0]});
  return {y, [=, this](const Values& dy, bool wanted) -> Values {
            if (!wanted) return nullptr;
            Values dx = values(samples_ * elements_of(in));
            add(PoolMeanGradients<V>{dy.get(), dx.get(), samples_, area_of(in), in[0]});
            return dx;
          }};
}

#define FAST_INSTANTIATE(V)                                                                        \
  template auto Builder<V>::layer(const nn::Dense&, const Shape&, const Values&, bool)->Made;      \
  template auto Builder<V>::layer(const nn::Conv2d&, const Shape&, const Values&, bool)->Made;     \
  template auto Builder<V>::layer(const nn::Relu&, const Shape&, const Values&, bool)->Made;       \
  template auto Builder<V>::layer(const nn::MaxPool&, const Shape&, const Values&, bool)->Made;    \
  template auto Builder<V>::layer(const nn::Flatten&, const Shape&, const Values&, bool)->Made;    \
  template auto Builder<V>::layer(const nn::GlobalAveragePool&, const Shape&, const Values&, bool) \
      ->Made;
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(BFloat16)
#undef FAST_INSTANTIATE

}  // namespace fast::cuda
