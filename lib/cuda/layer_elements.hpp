// Layers on the device but for convolutions and matrix products: what is computed for each place of
// a result, compiled for devices and for the host, so that a network can be tested without a
// device. Images are [sample][row][column][channel], vectors [sample][feature], of V, f32 or bf16;
// all is computed in f32. NaN passes through, so that the loss shows it.
#pragma once

#include "cuda/elements.hpp"

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

FAST_HOST_DEVICE float after_relu(float value, bool relu) { return relu && value < 0 ? 0 : value; }

/// [outer][rows][columns] to [outer][columns][rows].
template <class From, class To>
struct SwapLast {
  const From* from;
  To* to;
  Index outer, rows, columns;

  Index size() const { return outer * rows * columns; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index row = e % rows, column = e / rows % columns, first = e / rows / columns;
    put(get(from, (first * rows + row) * columns + column), to, e);
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
struct RectifySlopes {
  const V *y, *dy;
  V* dx;
  Index count;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float value[Width], slope[Width];
    load(y + e, value);
    load(dy + e, slope);
    for (int i = 0; i < Width; ++i) slope[i] = value[i] > 0 ? slope[i] : 0;
    store(slope, dx + e);
  }
};

/// out = a + b; then, with `relu`, at least 0. out may be a.
template <class V>
struct Add {
  const V *a, *b;
  V* out;
  Index count;
  bool relu;

  Index size() const { return packed_size<V>(count); }
  FAST_HOST_DEVICE void at(Index place) const { at_pack<V>(*this, count, place); }
  template <int Width>
  FAST_HOST_DEVICE void values(Index e) const {
    float sum[Width], more[Width];
    load(a + e, sum);
    load(b + e, more);
    for (int i = 0; i < Width; ++i) sum[i] = after_relu(sum[i] + more[i], relu);
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
/// equals.
template <class V>
struct PoolMax {
  const V* x;
  V* y;
  std::int32_t* places;
  PoolShape shape;

  Index size() const { return shape.samples * shape.out_height * shape.out_width * shape.channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % shape.channels, out = e / shape.channels;
    const Index column = out % shape.out_width, row = out / shape.out_width % shape.out_height;
    const Index image = out / shape.out_width / shape.out_height * shape.height * shape.width;
    Index best = shape.begin(row) * shape.width + shape.begin(column);
    float largest = get(x, (image + best) * shape.channels + c);
    for (Index r = shape.begin(row); r < shape.end(row, shape.height); ++r)
      for (Index k = shape.begin(column); k < shape.end(column, shape.width); ++k) {
        const float value = get(x, (image + r * shape.width + k) * shape.channels + c);
        if (value <= largest || largest != largest) continue;  // NaN passes
        largest = value;
        best = r * shape.width + k;
      }
    put(largest, y, e);
    places[e] = static_cast<std::int32_t>(best);
  }
};

/// Each place gathers from the windows that it is in.
template <class V>
struct PoolMaxSlopes {
  const V* dy;
  const std::int32_t* places;
  V* dx;
  PoolShape shape;

  Index size() const { return shape.samples * shape.height * shape.width * shape.channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index c = e % shape.channels, in = e / shape.channels;
    const Index column = in % shape.width, row = in / shape.width % shape.height;
    const Index images = in / shape.width / shape.height * shape.out_height;
    float sum = 0;
    for (Index r = shape.first_over(row); r <= shape.last_over(row, shape.out_height); ++r)
      for (Index k = shape.first_over(column); k <= shape.last_over(column, shape.out_width); ++k) {
        const Index out = ((images + r) * shape.out_width + k) * shape.channels + c;
        if (places[out] == row * shape.width + column) sum += get(dy, out);
      }
    put(sum, dx, e);
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
struct PoolMeanSlopes {
  const V* dy;
  V* dx;
  Index samples, area, channels;

  Index size() const { return samples * area * channels; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index sample = e / channels / area;
    put(get(dy, sample * channels + e % channels) / static_cast<float>(area), dx, e);
  }
};

/// nn::softmax_cross_entropy for each sample: its loss, whether it is classified rightly, and the
/// gradient of the mean loss unless `slopes` is null.
template <class V>
struct SoftmaxLoss {
  const V* logits;  // [samples][classes]
  const std::int32_t* labels;
  V* slopes;
  float* losses;
  std::int32_t* hits;
  Index samples, classes;

  Index size() const { return samples; }
  FAST_HOST_DEVICE void at(Index sample) const {
    const V* row = logits + sample * classes;
    const Index label = labels[sample];
    Index largest = 0;
    for (Index c = 1; c < classes; ++c)
      if (get(row, c) > get(row, largest)) largest = c;
    const float most = get(row, largest);
    double total = 0;
    for (Index c = 0; c < classes; ++c) total += static_cast<double>(::expf(get(row, c) - most));
    losses[sample] = static_cast<float>(::log(total) - static_cast<double>(get(row, label) - most));
    hits[sample] = largest == label ? 1 : 0;
    if (slopes == nullptr) return;
    const float scale = 1 / static_cast<float>(samples);
    const float share = scale / static_cast<float>(total);
    for (Index c = 0; c < classes; ++c)
      put(fused(::expf(get(row, c) - most), share, c == label ? -scale : 0.0F), slopes,
          sample * classes + c);
  }
};

}  // namespace fast::cuda
