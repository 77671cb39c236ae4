// Layer normalization on GPUs.
#pragma once

#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

/// Rows are vectors, or the steps of sequences. Statistics are [rows], parameters [features].
struct RowNorm {
  Index rows, features;
  float *mean, *reciprocal;
  const float *weight, *bias;

  template <class V>
  FAST_HOST_DEVICE float normal(const V* x, Index e) const {
    return (get(x, e) - mean[e / features]) * reciprocal[e / features];
  }
};

template <class V>
struct RowMoments {
  const V* x;
  RowNorm norm;
  float epsilon;

  Index size() const { return norm.rows; }
  FAST_HOST_DEVICE void at(Index row) const {
    const V* first = x + row * norm.features;
    double sum = 0, squares = 0;
    for (Index i = 0; i < norm.features; ++i) sum += static_cast<double>(get(first, i));
    const double center = sum / static_cast<double>(norm.features);
    for (Index i = 0; i < norm.features; ++i) {
      const double apart = static_cast<double>(get(first, i)) - center;
      squares += apart * apart;
    }
    const double variance = squares / static_cast<double>(norm.features);
    norm.mean[row] = static_cast<float>(center);
    norm.reciprocal[row] = static_cast<float>(1 / root(variance + static_cast<double>(epsilon)));
  }
};

template <class V>
struct RowNormalize {
  const V* x;
  V* y;
  RowNorm norm;

  Index size() const { return norm.rows * norm.features; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index i = e % norm.features;
    put(fused(norm.normal(x, e), norm.weight[i], norm.bias[i]), y, e);
  }
};

/// The gradients of weight and bias. A thread sums a feature over all rows.
template <class V>
struct RowNormTotals {
  const V *x, *dy;
  RowNorm norm;
  float *dweight, *dbias;

  Index size() const { return norm.features; }
  FAST_HOST_DEVICE void at(Index i) const {
    float sum = 0, product = 0;
    for (Index e = i; e < norm.rows * norm.features; e += norm.features) {
      const float grad = get(dy, e);
      sum += grad;
      product = fused(grad, norm.normal(x, e), product);
    }
    dweight[i] = product;
    dbias[i] = sum;
  }
};

/// Means over each row of the gradients of x̂ (`alone`), and of their products with x̂ (`times`).
template <class V>
struct RowNormShares {
  const V *x, *dy;
  RowNorm norm;
  float *alone, *times;

  Index size() const { return norm.rows; }
  FAST_HOST_DEVICE void at(Index row) const {
    double sum = 0, product = 0;
    for (Index i = 0; i < norm.features; ++i) {
      const Index e = row * norm.features + i;
      const float grad = get(dy, e) * norm.weight[i];
      sum += static_cast<double>(grad);
      product += static_cast<double>(grad * norm.normal(x, e));
    }
    alone[row] = static_cast<float>(sum / static_cast<double>(norm.features));
    times[row] = static_cast<float>(product / static_cast<double>(norm.features));
  }
};

template <class V>
struct RowNormGradients {
  const V *x, *dy;
  V* dx;
  RowNorm norm;
  const float *alone, *times;

  Index size() const { return norm.rows * norm.features; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index row = e / norm.features;
    const float grad = get(dy, e) * norm.weight[e % norm.features];
    put(norm.reciprocal[row] * (grad - alone[row] - norm.normal(x, e) * times[row]), dx, e);
  }
};

template <>
struct GpuPart<nn::LayerNorm> {
  template <class V>
  using Works = WorkList<RowMoments<V>, RowNormalize<V>, RowNormTotals<V>, RowNormShares<V>,
                         RowNormGradients<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::LayerNorm& layer, const Ends& ends,
                     const Values<V>& x, bool) {
    const Index features = ends.in.back(), count = build.samples() * elements_of(ends.in),
                rows = count / features;
    const Index w = build.parameters(features), b = build.parameters(features);
    const Sums mean = build.sums(rows), reciprocal = build.sums(rows);
    const auto norm = [=, &build] {
      return RowNorm{
          rows, features, mean.get(), reciprocal.get(), build.weights(w), build.weights(b)};
    };
    const Values<V> y = build.values(count);
    build.add(RowMoments<V>{x.get(), norm(), static_cast<float>(layer.epsilon)});
    build.add(RowNormalize<V>{x.get(), y.get(), norm()});
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      build.add(
          RowNormTotals<V>{x.get(), dy.get(), norm(), build.gradients(w), build.gradients(b)});
      if (!wanted) return nullptr;
      const Sums alone = build.sums(rows), times = build.sums(rows);
      build.add(RowNormShares<V>{x.get(), dy.get(), norm(), alone.get(), times.get()});
      Values<V> dx = build.values(count);
      build.add(RowNormGradients<V>{x.get(), dy.get(), dx.get(), norm(), alone.get(), times.get()});
      return dx;
    };
    return {y, backward, true};
  }
};

}  // namespace fast::cuda
