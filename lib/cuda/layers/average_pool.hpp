// Average pooling on GPUs.
#pragma once

#include "cuda/layers/max_pool.hpp"

namespace fast::cuda {

/// The mean of each window of images [samples][height][width][channels]. Padding counts as zeros.
template <class V>
struct WindowMean {
  const V* x;
  V* y;
  PoolShape shape;

  Index size() const { return shape.samples * shape.out_height * shape.out_width * shape.channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % shape.channels, out = e / shape.channels;
    const Index column = out % shape.out_width, row = out / shape.out_width % shape.out_height;
    const Index image = out / shape.out_width / shape.out_height * shape.height * shape.width;
    float sum = 0;
    for (Index r = shape.begin(row); r < shape.end(row, shape.height); ++r)
      for (Index k = shape.begin(column); k < shape.end(column, shape.width); ++k)
        sum += get(x, (image + r * shape.width + k) * shape.channels + c);
    put(sum / static_cast<float>(shape.size * shape.size), y, e);
  }
};

/// Each place sums the shares of its windows.
template <class V>
struct WindowMeanGradients {
  const V* dy;
  V* dx;
  PoolShape shape;

  Index size() const { return shape.samples * shape.height * shape.width * shape.channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % shape.channels, in = e / shape.channels;
    const Index column = in % shape.width, row = in / shape.width % shape.height;
    const Index images = in / shape.width / shape.height * shape.out_height;
    float sum = 0;
    for (Index r = shape.first_over(row); r <= shape.last_over(row, shape.out_height); ++r)
      for (Index k = shape.first_over(column); k <= shape.last_over(column, shape.out_width); ++k)
        sum += get(dy, ((images + r) * shape.out_width + k) * shape.channels + c);
    put(sum / static_cast<float>(shape.size * shape.size), dx, e);
  }
};

template <>
struct GpuPart<nn::AveragePool> {
  template <class V>
  using Works = WorkList<WindowMean<V>, WindowMeanGradients<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::AveragePool& pool, const Ends& ends,
                     const Values<V>& x, bool) {
    const PoolShape shape{build.samples(), ends.in[1], ends.in[2],  ends.in[0],  ends.out[1],
                          ends.out[2],     pool.size,  pool.stride, pool.padding};
    const Values<V> y = build.values(build.samples() * elements_of(ends.out));
    build.add(WindowMean<V>{x.get(), y.get(), shape});
    return {y, [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
              if (!wanted) return nullptr;
              Values<V> dx = build.values(build.samples() * elements_of(ends.in));
              build.add(WindowMeanGradients<V>{dy.get(), dx.get(), shape});
              return dx;
            }};
  }
};

}  // namespace fast::cuda
