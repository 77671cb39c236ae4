// Layers on the device but for convolutions and matrix products: what is computed for each place of
// a result, compiled for devices and for the host, so that a network can be tested without a
// device. Images are [sample][row][column][channel], vectors [sample][feature], of V, f32 or bf16;
// all is computed in f32. NaN passes through, so that the loss shows it.
#pragma once

#include <type_traits>

#include "cuda/kernels/elements.hpp"

namespace fast::cuda {

using Index = std::int64_t;

template <class V>
FAST_HOST_DEVICE float get(const V* from, Index e) {
  float value;
  convert(from[e], value);
  return value;
}
template <class V>
FAST_HOST_DEVICE void put(float value, V* to, Index e) {
  convert(value, to[e]);
}

/// Values in 16 bytes, which one access moves.
template <class V>
inline constexpr int pack_width = 16 / sizeof(V);

/// Places where values between layers, which begin at a multiple of 16 bytes, are taken in packs:
/// first whole packs, then what is left, one by one.
template <class V>
constexpr Index packed_size(Index count) {
  return count / pack_width<V> + count % pack_width<V>;
}
template <class V, class Elements>
FAST_HOST_DEVICE void at_pack(const Elements& elements, Index count, Index place) {
  constexpr int width = pack_width<V>;
  const Index packs = count / width;
  if (place < packs)
    elements.template values<width>(place * width);
  else
    elements.template values<1>(packs * (width - 1) + place);
}

/// Columns or channels that a thread takes side by side: a pack where every row begins with one.
template <class V>
FAST_HOST_DEVICE int width_of(Index columns) {
  return columns % pack_width<V> == 0 ? pack_width<V> : 1;
}

FAST_HOST_DEVICE float after_relu(float value, bool relu) { return relu && value < 0 ? 0 : value; }

/// [outer][rows][columns] to [outer][columns][rows], which may be the same order, in packs then
/// where both lie at multiples of 16 bytes.
template <class From, class To>
struct SwapLast {
  using Narrow = std::conditional_t<(sizeof(From) < sizeof(To)), From, To>;
  const From* from;
  To* to;
  Index outer, rows, columns;

  FAST_HOST_DEVICE Index count() const { return outer * rows * columns; }
  FAST_HOST_DEVICE bool in_packs() const {
    const auto both = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
    return (rows == 1 || columns == 1) && both % 16 == 0;
  }
  Index size() const { return in_packs() ? packed_size<Narrow>(count()) : count(); }
  FAST_HOST_DEVICE void at(Index e) const {
    if (in_packs()) return at_pack<Narrow>(*this, count(), e);
    // Devices divide 32 bits much faster than 64.
    const bool narrow = count() <= 0xffffffff;
    put(get(from, narrow ? source(static_cast<std::uint32_t>(e)) : source(e)), to, e);
  }
  /// The place that goes to e.
  template <class Number>
  FAST_HOST_DEVICE Index source(Number e) const {
    const auto height = static_cast<Number>(rows), width = static_cast<Number>(columns);
    const Number rest = e / height;
    return static_cast<Index>((rest / width * height + e % height) * width + rest % width);
  }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float value[Width];
    load(from + e, value);
    store(value, to + e);
  }
};

/// y += bias of the channel; then, with `relu`, at least 0.
template <class V>
struct AddBias {
  V* y;
  const float* bias;
  Index channels, count;
  bool relu;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const {
    put(after_relu(get(y, e) + bias[e % channels], relu), y, e);
  }
};

template <class V>
struct Rectify {
  const V* x;
  V* y;
  Index count;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float value[Width];
    load(x + e, value);
    for (int i = 0; i < Width; ++i) value[i] = after_relu(value[i], true);
    store(value, y + e);
  }
};

template <class V>
struct RectifyGradients {
  const V *y, *dy;
  V* dx;
  Index count;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float value[Width], grad[Width];
    load(y + e, value);
    load(dy + e, grad);
    for (int i = 0; i < Width; ++i) grad[i] = value[i] > 0 ? grad[i] : 0;
    store(grad, dx + e);
  }
};

/// out = a + b; then, with `relu`, at least 0; and 0 where `gate`, unless null, is not above 0. out
/// may be a.
template <class V>
struct Add {
  const V *a, *b;
  V* out;
  Index count;
  bool relu;
  const V* gate = nullptr;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float sum[Width], more[Width];
    load(a + e, sum);
    load(b + e, more);
    for (int i = 0; i < Width; ++i) sum[i] = after_relu(sum[i] + more[i], relu);
    if (gate != nullptr) {
      float open[Width];
      load(gate + e, open);
      for (int i = 0; i < Width; ++i) sum[i] = open[i] > 0 ? sum[i] : 0;
    }
    store(sum, out + e);
  }
};

/// sum = or += factor · x.
struct AddScaled {
  float* sum;
  const float* x;
  float factor;
  bool first;
  Index count;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const { sum[e] = fused(factor, x[e], first ? 0.0F : sum[e]); }
};

struct PoolShape {
  Index samples, height, width, channels, out_height, out_width, size, stride, padding;
  /// Where the window's part within a side begins and ends.
  FAST_HOST_DEVICE Index begin(Index window) const {
    const Index place = window * stride - padding;
    return place < 0 ? 0 : place;
  }
  FAST_HOST_DEVICE Index end(Index window, Index length) const {
    const Index place = window * stride - padding + size;
    return place < length ? place : length;
  }
  /// The first and last window that a place of a side is in.
  FAST_HOST_DEVICE Index first_over(Index place) const {
    return place + padding < size ? 0 : (place + padding - size) / stride + 1;
  }
  FAST_HOST_DEVICE Index last_over(Index place, Index windows) const {
    const Index window = (place + padding) / stride;
    return window < windows ? window : windows - 1;
  }
};

/// The largest of each window and its place in the image (row · width + column), the first of
/// equals; a thread takes neighboring channels, whose windows are the same.
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

/// Each place gathers from the windows that it is in.
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

}  // namespace fast::cuda
