// Pooling on GPUs.
#pragma once

#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

/// Max pooling on GPUs.
struct PoolShape {
  Index samples, height, width, channels, out_height, out_width, size, stride, padding;
  /// Begin and end of the part of a window inside a side.
  FAST_HOST_DEVICE Index begin(Index window) const {
    const Index place = window * stride - padding;
    return place < 0 ? 0 : place;
  }
  FAST_HOST_DEVICE Index end(Index window, Index length) const {
    const Index place = window * stride - padding + size;
    return place < length ? place : length;
  }
  /// The first and last window that contain a place of a side.
  FAST_HOST_DEVICE Index first_over(Index place) const {
    return place + padding < size ? 0 : (place + padding - size) / stride + 1;
  }
  FAST_HOST_DEVICE Index last_over(Index place, Index windows) const {
    const Index window = (place + padding) / stride;
    return window < windows ? window : windows - 1;
  }
};

/// The largest value of each window, the first of equals, and its place in the image (row · width +
/// column). A thread processes neighboring channels, whose windows are the same.
template <class V>
struct PoolMax {
  const V* x;
  V* y;
  std::int32_t* places;
  PoolShape shape;

  Index size() const {
    return shape.samples * shape.out_height * shape.out_width * shape.channels /
           width_of<V>(shape.channels);
  }
  FAST_HOST_DEVICE void at(Index e) const {
    if (width_of<V>(shape.channels) == 1)
      window<1>(e);
    else
      window<pack_width<V>>(e);
  }

 private:
  template <int Width>
  FAST_HOST_DEVICE void window(Index e) const {
    const Index packs = shape.channels / Width, c = e % packs * Width, out = e / packs;
    const Index column = out % shape.out_width, row = out / shape.out_width % shape.out_height;
    const Index image = out / shape.out_width / shape.out_height * shape.height * shape.width;
    const Index first = shape.begin(row) * shape.width + shape.begin(column);
    float largest[Width], value[Width];
    Pack<std::int32_t, Width> best;
    load(x + (image + first) * shape.channels + c, largest);
    for (int i = 0; i < Width; ++i) best.values[i] = static_cast<std::int32_t>(first);
    for (Index r = shape.begin(row); r < shape.end(row, shape.height); ++r)
      for (Index k = shape.begin(column); k < shape.end(column, shape.width); ++k) {
        const Index place = r * shape.width + k;
        load(x + (image + place) * shape.channels + c, value);
        for (int i = 0; i < Width; ++i) {
          if (value[i] <= largest[i] || largest[i] != largest[i]) continue;  // NaN passes
          largest[i] = value[i];
          best.values[i] = static_cast<std::int32_t>(place);
        }
      }
    store(largest, y + out * shape.channels + c);
    *reinterpret_cast<Pack<std::int32_t, Width>*>(places + out * shape.channels + c) = best;
  }
};

/// Each place sums the gradients of its windows.
template <class V>
struct PoolMaxGradients {
  const V* dy;
  const std::int32_t* places;
  V* dx;
  PoolShape shape;

  Index size() const {
    return shape.samples * shape.height * shape.width * shape.channels /
           width_of<V>(shape.channels);
  }
  FAST_HOST_DEVICE void at(Index e) const {
    if (width_of<V>(shape.channels) == 1)
      place<1>(e);
    else
      place<pack_width<V>>(e);
  }

 private:
  template <int Width>
  FAST_HOST_DEVICE void place(Index e) const {
    const Index packs = shape.channels / Width, c = e % packs * Width, in = e / packs;
    const Index column = in % shape.width, row = in / shape.width % shape.height;
    const Index images = in / shape.width / shape.height * shape.out_height;
    float sum[Width] = {}, grad[Width];
    for (Index r = shape.first_over(row); r <= shape.last_over(row, shape.out_height); ++r)
      for (Index k = shape.first_over(column); k <= shape.last_over(column, shape.out_width); ++k) {
        const Index out = ((images + r) * shape.out_width + k) * shape.channels + c;
        const auto from = *reinterpret_cast<const Pack<std::int32_t, Width>*>(places + out);
        load(dy + out, grad);
        for (int i = 0; i < Width; ++i)
          sum[i] += from.values[i] == row * shape.width + column ? grad[i] : 0;
      }
    store(sum, dx + in * shape.channels + c);
  }
};

template <>
struct GpuPart<nn::MaxPool> {
  template <class V>
  using Works = WorkList<PoolMax<V>, PoolMaxGradients<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::MaxPool& pool, const Ends& ends,
                     const Values<V>& x, bool) {
    const PoolShape shape{build.samples(), ends.in[1], ends.in[2],  ends.in[0],  ends.out[1],
                          ends.out[2],     pool.size,  pool.stride, pool.padding};
    const Values<V> y = build.values(build.samples() * elements_of(ends.out));
    const auto places = build.template take<std::int32_t>(build.samples() * elements_of(ends.out));
    build.add(PoolMax<V>{x.get(), y.get(), places.get(), shape});
    return {y, [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
              if (!wanted) return nullptr;
              Values<V> dx = build.values(build.samples() * elements_of(ends.in));
              build.add(PoolMaxGradients<V>{dy.get(), places.get(), dx.get(), shape});
              return dx;
            }};
  }
};

// Average pooling on GPUs.

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

// Global average pooling on GPUs.

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
