// Attention on GPUs: the dense layers are those of nn::Dense, and each thread between them computes
// one sum.
#pragma once

#include "nn/layers/dense_cuda.hpp"
#include "nn/layers/softmax_cuda.hpp"

namespace fast::cuda {

/// Weights are [sample][head][step][step]. `width` features of a step belong to a head.
struct HeadSizes {
  Index samples, steps, heads, width;

  FAST_HOST_DEVICE Index features() const { return heads * width; }
  FAST_HOST_DEVICE Index weights() const { return samples * heads * steps * steps; }
};

/// Features [sample][step], of which a step has `stride` values.
template <class V>
struct Steps {
  V* first;
  Index stride;
};

/// out = factor · Σ a·b over the features of a head, for each two steps.
template <class V>
struct HeadScores {
  HeadSizes sizes;
  Steps<const V> a, b;
  float* out;
  float factor;

  Index size() const { return sizes.weights(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index steps = sizes.steps, of_head = e / steps / steps;
    const Index sample = of_head / sizes.heads, first = of_head % sizes.heads * sizes.width;
    const V* left = a.first + (sample * steps + e / steps % steps) * a.stride + first;
    const V* right = b.first + (sample * steps + e % steps) * b.stride + first;
    float sum = 0;
    for (Index i = 0; i < sizes.width; ++i) sum = fused(get(left, i), get(right, i), sum);
    out[e] = factor * sum;
  }
};

/// out = factor · Σ weights·values over the second step, or with `by_column` over the first step of
/// the weights.
template <class V>
struct HeadSums {
  HeadSizes sizes;
  const float* weights;
  bool by_column;
  Steps<const V> values;
  Steps<V> out;
  float factor;

  Index size() const { return sizes.samples * sizes.steps * sizes.features(); }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index steps = sizes.steps, feature = e % sizes.features();
    const Index row = e / sizes.features(), sample = row / steps, step = row % steps;
    const Index matrix = (sample * sizes.heads + feature / sizes.width) * steps * steps;
    float sum = 0;
    for (Index other = 0; other < steps; ++other) {
      const Index place = by_column ? other * steps + step : step * steps + other;
      sum = fused(weights[matrix + place],
                  get(values.first, (sample * steps + other) * values.stride + feature), sum);
    }
    put(factor * sum, out.first, row * out.stride + feature);
  }
};

template <>
struct GpuPart<nn::Attention> {
  template <class V>
  using Works = WorkList<HeadScores<V>, HeadSums<V>, RowSoftmax<float>, RowSoftmaxGradients<float>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Attention& attention, const Ends& ends,
                     const Values<V>& x, bool) {
    const Index steps = ends.in[0], features = ends.in[1], all = 3 * features;
    const HeadSizes sizes{build.samples(), steps, attention.heads, features / attention.heads};
    const Index rows = sizes.weights() / steps, count = sizes.samples * steps * features;
    const auto factor = static_cast<float>(1 / root(static_cast<double>(sizes.width)));
    const Made<V> qkv =
        GpuPart<nn::Dense>::add(build, nn::Dense{all}, {ends.in, {steps, all}}, x, false);
    const auto part = [=](V* first, Index which) {
      return Steps<V>{first + which * features, all};
    };
    const auto read = [=](const Values<V>& from, Index which) {
      return Steps<const V>{from.get() + which * features, all};
    };
    const Sums weights = build.sums(sizes.weights());
    build.add(HeadScores<V>{sizes, read(qkv.y, 0), read(qkv.y, 1), weights.get(), factor});
    build.add(RowSoftmax<float>{weights.get(), weights.get(), rows, steps, attention.causal});
    const Values<V> sums = build.values(count);
    build.add(HeadSums<V>{sizes, weights.get(), false, read(qkv.y, 2), {sums.get(), features}, 1});
    const Made<V> out = GpuPart<nn::Dense>::add(build, nn::Dense{features}, ends, sums, false);
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      const Values<V> dsums = out.backward(dy, true), dqkv = build.values(3 * count);
      const Steps<const V> behind{dsums.get(), features};
      build.add(HeadSums<V>{sizes, weights.get(), true, behind, part(dqkv.get(), 2), 1});
      const Sums grads = build.sums(sizes.weights());
      build.add(HeadScores<V>{sizes, behind, read(qkv.y, 2), grads.get(), 1});
      build.add(RowSoftmaxGradients<float>{weights.get(), grads.get(), grads.get(), rows, steps});
      build.add(
          HeadSums<V>{sizes, grads.get(), false, read(qkv.y, 1), part(dqkv.get(), 0), factor});
      build.add(HeadSums<V>{sizes, grads.get(), true, read(qkv.y, 0), part(dqkv.get(), 1), factor});
      return qkv.backward(dqkv, wanted);
    };
    return {out.y, backward, true};
  }
};

}  // namespace fast::cuda
