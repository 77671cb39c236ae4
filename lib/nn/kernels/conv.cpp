// Direct convolutions, vectorised over the samples of a block: padding is a matter of loop bounds,
// and nothing is copied or unrolled. A tile of outputs stays in registers (12 of 16 accumulate).
#include "nn/kernels/vector.hpp"

namespace fast::nn {
namespace {

constexpr int tile = 6;  // outputs, two vectors each

/// The kernel's rows (or columns) that touch one output row, and the input rows they meet.
struct Taps {
  Index count, kernel, kernel_step, input, input_step;
};

Taps forward_taps(Index out, Index length, Index kernel, Index stride, Index padding) {
  const Index corner = out * stride - padding;
  const Index first = larger(0, -corner);
  return {larger(0, smaller(kernel, length - corner) - first), first, 1, corner + first, 1};
}

/// The same for the input's gradient, whose "input" is the output's gradient.
Taps backward_taps(Index in, Index out_length, Index kernel, Index stride, Index padding) {
  const Index reach = in + padding;  // = out * stride + kernel index
  Index first = reach % stride;
  const Index beyond = reach - first - (out_length - 1) * stride;
  if (beyond > 0) first += beyond;
  const Index end = smaller(kernel, reach + 1);
  const Index count = first < end ? (end - first + stride - 1) / stride : 0;
  return {count, first, stride, (reach - first) / stride, -1};
}

/// Where a gather reads: `planes` planes of height x width places.
struct Source {
  Index planes, height, width, kernel;
};

/// outs[m] = start[m] + the weighted sum over planes and taps. weights is
/// [plane][kernel][kernel][M].
template <int M, class T>
void gather(const Source& s, const Taps& rows, const Taps& columns, const T* weights,
            const T* start, const Vector<T>* in, Vector<T>* out, Index out_stride) {
  Vector<T> low[M], high[M];
  for (int m = 0; m < M; ++m) low[m] = high[m] = Vector<T>{} + (start == nullptr ? T{0} : start[m]);
  for (Index plane = 0; plane < s.planes; ++plane)
    for (Index r = 0; r < rows.count; ++r) {
      const Index row = plane * s.height + rows.input + r * rows.input_step;
      const Vector<T>* x = in + 2 * (row * s.width + columns.input);
      const Index kernel_row = plane * s.kernel + rows.kernel + r * rows.kernel_step;
      const T* w = weights + (kernel_row * s.kernel + columns.kernel) * M;
      for (Index c = 0; c < columns.count;
           ++c, x += 2 * columns.input_step, w += M * columns.kernel_step) {
        const Vector<T> x0 = x[0], x1 = x[1];
        for (int m = 0; m < M; ++m) {
          low[m] += w[m] * x0;
          high[m] += w[m] * x1;
        }
      }
    }
  for (int m = 0; m < M; ++m) {
    out[m * out_stride] = low[m];
    out[m * out_stride + 1] = high[m];
  }
}

/// One tile of M output planes of one block.
template <int M, class T, class TapsAt>
void gather_planes(const Source& s, Index height, Index width, TapsAt taps_at, const T* weights,
                   const T* start, const T* in, T* out) {
  for (Index row = 0; row < height; ++row)
    for (Index column = 0; column < width; ++column)
      gather<M>(s, taps_at(row, s.height), taps_at(column, s.width), weights, start, vectors(in),
                vectors(out) + 2 * (row * width + column), 2 * height * width);
}

template <int M, class T, class... Args>
void gather_planes_of(Index outputs, Args... args) {
  if constexpr (M > 0) {
    if (outputs == M) return gather_planes<M, T>(args...);
    gather_planes_of<M - 1, T>(outputs, args...);
  }
}

/// `outputs` planes in tiles of nearly equal size.
struct Tiles {
  Index outputs, count;
  explicit Tiles(Index outputs_) : outputs(outputs_), count((outputs_ + tile - 1) / tile) {}
  Index begin(Index i) const { return outputs * i / count; }
};

template <class T, class TapsAt>
void gather_all(const Source& s, Index outputs, Index height, Index width, TapsAt taps_at,
                const T* packed, const T* bias, const T* in, T* out, Index blocks) {
  const Tiles tiles(outputs);
  for (Index block = 0; block < blocks; ++block)
    for (Index t = 0; t < tiles.count; ++t) {
      const Index first = tiles.begin(t);
      gather_planes_of<tile, T>(tiles.begin(t + 1) - first, s, height, width, taps_at,
                                packed + first * s.planes * s.kernel * s.kernel,
                                bias == nullptr ? bias : bias + first,
                                in + block * s.planes * s.height * s.width * lanes<T>,
                                out + (block * outputs + first) * height * width * lanes<T>);
    }
}

/// packed: [tile][plane][kernel²][output of the tile] from weight_at(output, plane) -> kernel²
/// values.
template <class T, class WeightAt>
void pack(Index outputs, Index planes, Index area, WeightAt weight_at, T* packed) {
  const Tiles tiles(outputs);
  for (Index t = 0; t < tiles.count; ++t)
    for (Index plane = 0; plane < planes; ++plane)
      for (Index k = 0; k < area; ++k)
        for (Index o = tiles.begin(t); o < tiles.begin(t + 1); ++o)
          *packed++ = weight_at(o, plane)[k];
}

}  // namespace

template <class T>
void conv_forward(const ConvSize& s, const T* weights, const T* bias, const T* x, T* y,
                  Index blocks, T* packed) {
  const Index area = s.kernel * s.kernel;
  pack(
      s.filters, s.channels, area,
      [&](Index o, Index c) { return weights + (o * s.channels + c) * area; }, packed);
  const auto taps = [&s](Index out, Index length) {
    return forward_taps(out, length, s.kernel, s.stride, s.padding);
  };
  gather_all({s.channels, s.height, s.width, s.kernel}, s.filters, s.out_height, s.out_width, taps,
             static_cast<const T*>(packed), bias, x, y, blocks);
}

template <class T>
void conv_input_gradient(const ConvSize& s, const T* weights, const T* dy, T* dx, Index blocks,
                         T* packed) {
  const Index area = s.kernel * s.kernel;
  pack(
      s.channels, s.filters, area,
      [&](Index c, Index o) { return weights + (o * s.channels + c) * area; }, packed);
  const auto taps = [&s](Index in, Index out_length) {
    return backward_taps(in, out_length, s.kernel, s.stride, s.padding);
  };
  gather_all({s.filters, s.out_height, s.out_width, s.kernel}, s.channels, s.height, s.width, taps,
             static_cast<const T*>(packed), static_cast<const T*>(nullptr), dy, dx, blocks);
}

#define FAST_INSTANTIATE(T)                                                                 \
  template void conv_forward(const ConvSize&, const T*, const T*, const T*, T*, Index, T*); \
  template void conv_input_gradient(const ConvSize&, const T*, const T*, T*, Index, T*);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
