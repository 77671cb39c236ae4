// The gradient of a convolution's weights: tiles of filters x channels, a vector of partial sums
// for each weight, over all blocks; the lanes are added up at the end.
#include "nn/kernels/vector.hpp"

namespace fast::nn {
namespace {

/// Adds one row of products: sums[o][c] += Σ_columns dy[o][column] · x[c][column · stride].
template <int Filters, int Channels, class T>
void add_row(const Vector<T>* dy, Index dy_plane, const Vector<T>* x, Index x_plane, Index stride,
             Index columns, Vector<T>* sums) {
  constexpr int chains = Filters * Channels <= 6 ? 2 : 1;  // enough to hide the FMA's latency
  constexpr int size = Filters * Channels;
  Vector<T> sum[chains * size];
#pragma GCC unroll 16
  for (int i = 0; i < chains * size; ++i) sum[i] = Vector<T>{};  // not `= {}`: that goes by memory
  for (Index column = 0; column < columns; ++column, dy += 2, x += 2 * stride)
    for (int half = 0; half < 2; ++half) {
      Vector<T>* chain = sum + half % chains * size;
      Vector<T> value[Channels];
      for (int c = 0; c < Channels; ++c) value[c] = x[c * x_plane + half];
      for (int o = 0; o < Filters; ++o) {
        const Vector<T> slope = dy[o * dy_plane + half];
        for (int c = 0; c < Channels; ++c) chain[o * Channels + c] += slope * value[c];
      }
    }
  for (int i = 0; i < size; ++i)
    sums[i] += chains == 2 ? sum[i] + sum[i + size * (chains - 1)] : sum[i];
}

/// First and last+1 output place whose kernel place k meets the input.
struct Reach {
  Index begin, end;
};
Reach reach(Index k, Index length, Index out_length, Index stride, Index padding) {
  const Index missing = larger(0, padding - k);
  const Index last = length - 1 + padding - k;
  return {(missing + stride - 1) / stride, last < 0 ? 0 : smaller(out_length, last / stride + 1)};
}

template <int Filters, int Channels, class T>
void add_block(const ConvSize& s, const T* x, const T* dy, Vector<T>* sums) {
  for (Index row = 0; row < s.out_height; ++row)
    for (Index i = 0; i < s.kernel; ++i) {
      const Index in_row = row * s.stride - s.padding + i;
      if (in_row < 0 || in_row >= s.height) continue;
      for (Index j = 0; j < s.kernel; ++j) {
        const Reach columns = reach(j, s.width, s.out_width, s.stride, s.padding);
        if (columns.begin >= columns.end) continue;
        const Index in_column = columns.begin * s.stride - s.padding + j;
        add_row<Filters, Channels, T>(
            vectors(dy) + 2 * (row * s.out_width + columns.begin), 2 * s.out_height * s.out_width,
            vectors(x) + 2 * (in_row * s.width + in_column), 2 * s.height * s.width, s.stride,
            columns.end - columns.begin, sums + (i * s.kernel + j) * Filters * Channels);
      }
    }
}

template <class T>
T sum_of(Vector<T> v) {
  T total = 0;
  for (int lane = 0; lane < lanes<T> / 2; ++lane) total += v[lane];
  return total;
}

template <int Filters, int Channels, class T>
void tile_gradient(const ConvSize& s, Index filter, Index channel, const T* x, const T* dy,
                   T* dweights, Index blocks, Vector<T>* sums) {
  const Index area = s.kernel * s.kernel;
  for (Index i = 0; i < area * Filters * Channels; ++i) sums[i] = Vector<T>{};
  for (Index block = 0; block < blocks; ++block)
    add_block<Filters, Channels>(
        s, x + (block * s.channels + channel) * s.height * s.width * lanes<T>,
        dy + (block * s.filters + filter) * s.out_height * s.out_width * lanes<T>, sums);
  for (int o = 0; o < Filters; ++o)
    for (int c = 0; c < Channels; ++c)
      for (Index k = 0; k < area; ++k)
        dweights[((filter + o) * s.channels + channel + c) * area + k] =
            sum_of<T>(sums[(k * Filters + o) * Channels + c]);
}

/// All filters for `Channels` channels, at most `Filters` filters at a time.
template <int Filters, int Channels, class T, class... Args>
void filters_gradient(const ConvSize& s, Index filter, Index channel, Args... args) {
  if constexpr (Filters > 0) {
    for (; filter + Filters <= s.filters; filter += Filters)
      tile_gradient<Filters, Channels, T>(s, filter, channel, args...);
    filters_gradient<Filters - 1, Channels, T>(s, filter, channel, args...);
  }
}

}  // namespace

Index conv_scratch_bytes(const ConvSize& s) { return s.kernel * s.kernel * 12 * vector_bytes; }

template <class T>
void conv_weight_gradient(const ConvSize& s, const T* x, const T* dy, T* dweights, T* dbias,
                          Index blocks, T* sums) {
  Index channel = 0;
  for (; channel + 3 <= s.channels; channel += 3)
    filters_gradient<4, 3, T>(s, 0, channel, x, dy, dweights, blocks, vectors(sums));
  for (; channel < s.channels; ++channel)
    filters_gradient<6, 1, T>(s, 0, channel, x, dy, dweights, blocks, vectors(sums));
  if (dbias == nullptr) return;
  const Index plane = 2 * s.out_height * s.out_width;
  for (Index o = 0; o < s.filters; ++o) {
    Vector<T> sum{};
    for (Index block = 0; block < blocks; ++block)
      for (Index i = 0; i < plane; ++i) sum += vectors(dy)[(block * s.filters + o) * plane + i];
    dbias[o] = sum_of<T>(sum);
  }
}

#define FAST_INSTANTIATE(T) \
  template void conv_weight_gradient(const ConvSize&, const T*, const T*, T*, T*, Index, T*);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
