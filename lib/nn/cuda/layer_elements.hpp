// Code of kernels of layers, one place of a result at a time. Devices and the host compile it, so
// that tests of networks need no device. Images are [sample][row][column][channel], vectors
// [sample][feature]. V, f32 or bf16, is the type of values; the arithmetic is in f32. NaN gives
// NaN, so that the loss shows it.
#pragma once

#include <type_traits>

#include "cuda/device/elements.hpp"

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

/// Number of values in 16 bytes, the size of one memory access.
template <class V>
inline constexpr int pack_width = 16 / sizeof(V);

/// Number of places if values are processed in packs: whole packs first, then the rest one by one.
/// Values between layers begin at a multiple of 16 bytes.
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

/// Number of neighboring columns or channels per thread: a pack if the length of a row is a
/// multiple of a pack.
template <class V>
FAST_HOST_DEVICE int width_of(Index columns) {
  return columns % pack_width<V> == 0 ? pack_width<V> : 1;
}

FAST_HOST_DEVICE float after_relu(float value, bool relu) { return relu && value < 0 ? 0 : value; }

/// [outer][rows][columns] to [outer][columns][rows]. If the order stays the same and both begin at
/// multiples of 16 bytes, values are copied in packs.
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
    // Devices divide 32-bit numbers much faster than 64-bit numbers.
    const bool narrow = count() <= 0xffffffff;
    put(get(from, narrow ? source(static_cast<std::uint32_t>(e)) : source(e)), to, e);
  }
  /// The source of element e.
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

/// y += bias of the channel. With `relu`, then max(y, 0).
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

/// sum = factor · x if `first`, else sum += factor · x.
struct AddScaled {
  float* sum;
  const float* x;
  float factor;
  bool first;
  Index count;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const { sum[e] = fused(factor, x[e], first ? 0.0F : sum[e]); }
};

}  // namespace fast::cuda
