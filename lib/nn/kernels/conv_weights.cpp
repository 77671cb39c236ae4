// The gradient of the weights of a convolution, in tiles of filters x channels. Each weight has a
// vector of partial sums over all blocks. The lanes of these vectors are summed at the end.
#include "nn/kernels/vector.hpp"

namespace fast::nn {
namespace {

/// A rectangle of places of dy, and the matching places of x for one kernel place. Steps are in
/// vectors.
struct Patch {
  Index rows, columns;
  Index dy_plane, dy_row, x_plane, x_row, x_column;
};

/// Adds the products of a patch: sums[o][c] += Σ_places dy[o][place] · x[c][place · stride].
template <int Filters, int Channels, class T>
void add_patch(const Patch& p, const Vector<T>* dy, const Vector<T>* x, Vector<T>* sums) {
  constexpr int chains = Filters * Channels <= 6 ? 2 : 1;  // enough to hide the FMA's latency
  constexpr int size = Filters * Channels;
  Vector<T> sum[chains * size];
#pragma GCC unroll 16
  for (int i = 0; i < chains * size; ++i) sum[i] = Vector<T>{};  // not `= {}`: that goes by memory
  for (Index row = 0; row < p.rows; ++row) {
    const Vector<T>* grads = dy + row * p.dy_row;
    const Vector<T>* values = x + row * p.x_row;
    for (Index column = 0; column < p.columns; ++column, grads += 2, values += p.x_column)
      for (int half = 0; half < 2; ++half) {
        Vector<T>* chain = sum + half % chains * size;
        Vector<T> value[Channels];
        for (int c = 0; c < Channels; ++c) value[c] = values[c * p.x_plane + half];
        for (int o = 0; o < Filters; ++o) {
          const Vector<T> grad = grads[o * p.dy_plane + half];
          for (int c = 0; c < Channels; ++c) chain[o * Channels + c] += grad * value[c];
        }
      }
  }
  for (int i = 0; i < size; ++i)
    sums[i] += chains == 2 ? sum[i] + sum[i + size * (chains - 1)] : sum[i];
}

/// First and last + 1 output place for which kernel place k is inside the input.
struct Reach {
  Index begin, end;
};
Reach reach(Index k, Index length, Index out_length, Index stride, Index padding) {
  const Index missing = larger(0, padding - k);
  const Index last = length - 1 + padding - k;
  return {(missing + stride - 1) / stride, last < 0 ? 0 : smaller(out_length, last / stride + 1)};
}

/// Bands of rows. A band of a narrow image is large enough to keep sums in registers, and one of a
/// wide image small enough to stay in cache for all kernel places.
template <int Filters, int Channels, class T>
void add_block(const ConvSize& s, const T* x, const T* dy, Vector<T>* sums) {
  const Index band = larger(1, 32 / s.out_width);
  const Index dy_row = 2 * s.out_width, x_row = 2 * s.width;
  for (Index begin = 0; begin < s.out_height; begin += band)
    for (Index i = 0; i < s.kernel; ++i) {
      const Reach rows = reach(i, s.height, s.out_height, s.stride, s.padding);
      const Index first = larger(begin, rows.begin);
      const Index row_count = smaller(begin + band, rows.end) - first;
      if (row_count <= 0) continue;
      for (Index j = 0; j < s.kernel; ++j) {
        const Reach columns = reach(j, s.width, s.out_width, s.stride, s.padding);
        if (columns.begin >= columns.end) continue;
        const Index in_row = first * s.stride - s.padding + i;
        const Index in_column = columns.begin * s.stride - s.padding + j;
        add_patch<Filters, Channels, T>(
            {row_count, columns.end - columns.begin, s.out_height * dy_row, dy_row,
             s.height * x_row, s.stride * x_row, s.stride * 2},
            vectors(dy) + first * dy_row + 2 * columns.begin,
            vectors(x) + in_row * x_row + 2 * in_column,
            sums + (i * s.kernel + j) * Filters * Channels);
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

/// Processes all filters for `Channels` channels, at most `Filters` filters at a time.
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
  // Tiles of four take the rest of tiles of three. Single channels load more, so they are used only
  // if there are few.
  Index fours = s.channels >= 4 * (s.channels % 3) ? s.channels % 3 : 0;
  for (; fours > 0; --fours, channel += 4)
    filters_gradient<3, 4, T>(s, 0, channel, x, dy, dweights, blocks, vectors(sums));
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
