// Global average pooling on GPUs.
#pragma once

#include "cuda/layers/shared.hpp"

namespace fast::cuda {

/// Images [samples][area][channels] to vectors [samples][channels].
template <class V>
struct PoolMean {
  const V* x;
  V* y;
  Index samples, area, channels;

  Index size() const { return samples * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const V* first = x + e / channels * area * channels + e % channels;
    float sum = 0;
    for (Index i = 0; i < area; ++i) sum += get(first, i * channels);
    put(sum / static_cast<float>(area), y, e);
  }
};

template <class V>
struct PoolMeanGradients {
  const V* dy;
  V* dx;
  Index samples, area, channels;

  Index size() const { return samples * area * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index sample = e / channels / area;
    put(get(dy, sample * channels + e % channels) / static_cast<float>(area), dx, e);
  }
};

template <>
struct GpuPart<nn::GlobalAveragePool> {
  template <class V>
  using Works = WorkList<PoolMean<V>, PoolMeanGradients<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::GlobalAveragePool&, const Ends& ends,
                     const Values<V>& x, bool) {
    const Values<V> y = build.values(build.samples() * ends.in[0]);
    build.add(PoolMean<V>{x.get(), y.get(), build.samples(), area_of(ends.in), ends.in[0]});
    return {y, [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
              if (!wanted) return nullptr;
              Values<V> dx = build.values(build.samples() * elements_of(ends.in));
              build.add(PoolMeanGradients<V>{dy.get(), dx.get(), build.samples(), area_of(ends.in),
                                             ends.in[0]});
              return dx;
            }};
  }
};

}  // namespace fast::cuda
