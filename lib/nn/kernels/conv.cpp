// Direct convolutions, vectorized over the samples of a block. The input rows that an output row
// needs are copied to a ring [row][column][plane]. There, the columns and planes of a kernel row
// are contiguous. Loop bounds implement the padding. A tile of outputs stays in registers (12 of 16
// accumulate).

#include "nn/kernels/vector.hpp"

namespace fast::nn {
namespace {

constexpr int tile = 6;  // outputs, two vectors each

/// The kernel rows (or columns) that contribute to one output row: the first one, their distance,
/// and the input row of the first one.
struct Taps {
  Index count, kernel, kernel_step, input;
};

Taps forward_taps(Index out, Index length, Index kernel, Index stride, Index padding) {
  const Index corner = out * stride - padding;
  const Index first = larger(0, -corner);
  return {larger(0, smaller(kernel, length - corner) - first), first, 1, corner + first};
}

/// The same for the gradient of the input. Its "input" is the gradient of the output, and the
/// kernel is mirrored.
Taps backward_taps(Index in, Index out_length, Index kernel, Index stride, Index padding) {
  const Index reach = in + padding;  // = out * stride + kernel index
  Index first = reach % stride;
  const Index beyond = reach - first - (out_length - 1) * stride;
  if (beyond > 0) first += beyond;
  const Index end = smaller(kernel, reach + 1);
  const Index count = first < end ? (end - first + stride - 1) / stride : 0;
  const Index last = first + (count - 1) * stride;  // the first of the mirrored kernel
  return {count, kernel - 1 - last, stride, (reach - last) / stride};
}

/// The source of a gather: `planes` planes of height x width places.
struct Source {
  Index planes, height, width, kernel;
};

/// The copied input rows. Row r is at place r mod kernel.
template <class T>
class Ring {
 public:
  Ring(const Source& s, const T* in, T* memory)
      : source_(s), in_(vectors(in)), memory_(vectors(memory)) {}

  const Vector<T>* row(Index r) const { return memory_ + r % source_.kernel * row_vectors(); }

  /// Copies rows first..end-1. Neither bound may decrease between calls.
  void load(Index first, Index end) {
    for (next_ = larger(next_, first); next_ < end; ++next_) {
      Vector<T>* out = memory_ + next_ % source_.kernel * row_vectors();
      for (Index plane = 0; plane < source_.planes; ++plane) {
        const Vector<T>* from = in_ + 2 * (plane * source_.height + next_) * source_.width;
        for (Index column = 0; column < source_.width; ++column) {
          Vector<T>* to = out + 2 * (column * source_.planes + plane);
          to[0] = from[2 * column];
          to[1] = from[2 * column + 1];
        }
      }
    }
  }

 private:
  Index row_vectors() const { return 2 * source_.width * source_.planes; }

  Source source_;
  const Vector<T>* in_;
  Vector<T>* memory_;
  Index next_ = 0;
};

/// outs[m] = start[m] + the weighted sum over kernel places and planes. weights is
/// [kernel][kernel][plane][M].
template <int M, class T>
void gather(const Source& s, const Taps& rows, const Taps& columns, const T* weights,
            const T* start, const Ring<T>& ring, Vector<T>* out, Index out_stride) {
  Vector<T> low[M], high[M];
  for (int m = 0; m < M; ++m) low[m] = high[m] = Vector<T>{} + (start == nullptr ? T{0} : start[m]);
  const bool whole = columns.kernel_step == 1;  // all columns' planes in one run
  const Index runs = whole ? smaller(columns.count, 1) : columns.count;
  const Index length = whole ? columns.count * s.planes : s.planes;
  for (Index r = 0; r < rows.count; ++r) {
    const Vector<T>* x = ring.row(rows.input + r) + 2 * columns.input * s.planes;
    const Index kernel_row = rows.kernel + r * rows.kernel_step;
    for (Index run = 0; run < runs; ++run) {
      const Index kernel_column = columns.kernel + run * columns.kernel_step;
      const T* w = weights + (kernel_row * s.kernel + kernel_column) * s.planes * M;
      for (const Vector<T>* end = x + 2 * length; x != end; x += 2, w += M) {
        const Vector<T> x0 = x[0], x1 = x[1];
        for (int m = 0; m < M; ++m) {
          low[m] += w[m] * x0;
          high[m] += w[m] * x1;
        }
      }
    }
  }
  for (int m = 0; m < M; ++m) {
    out[m * out_stride] = low[m];
    out[m * out_stride + 1] = high[m];
  }
}

/// One row of a tile of M output planes of one block.
template <int M, class T, class TapsAt>
void gather_row(const Source& s, const Taps& rows, Index width, TapsAt taps_at, const T* weights,
                const T* start, const Ring<T>* ring, T* out, Index out_stride) {
  for (Index column = 0; column < width; ++column)
    gather<M>(s, rows, taps_at(column, s.width), weights, start, *ring, vectors(out) + 2 * column,
              out_stride);
}

template <int M, class T, class... Args>
void gather_row_of(Index outputs, Args... args) {
  if constexpr (M > 0) {
    if (outputs == M) return gather_row<M, T>(args...);
    gather_row_of<M - 1, T>(outputs, args...);
  }
}

/// Splits `outputs` planes into tiles of nearly equal size.
struct Tiles {
  Index outputs, count;
  explicit Tiles(Index outputs_) : outputs(outputs_), count((outputs_ + tile - 1) / tile) {}
  Index begin(Index i) const { return outputs * i / count; }
};

template <class T, class TapsAt>
void gather_all(const Source& s, Index outputs, Index height, Index width, TapsAt taps_at,
                const T* packed, const T* bias, const T* in, T* out, Index blocks, T* rows) {
  const Tiles tiles(outputs);
  for (Index block = 0; block < blocks; ++block) {
    Ring<T> ring(s, in + block * s.planes * s.height * s.width * lanes<T>, rows);
    for (Index row = 0; row < height; ++row) {
      const Taps taps = taps_at(row, s.height);
      ring.load(taps.input, taps.input + taps.count);
      for (Index t = 0; t < tiles.count; ++t) {
        const Index first = tiles.begin(t);
        gather_row_of<tile, T>(
            tiles.begin(t + 1) - first, s, taps, width, taps_at,
            packed + first * s.planes * s.kernel * s.kernel, bias == nullptr ? bias : bias + first,
            &ring, out + (((block * outputs + first) * height + row) * width) * lanes<T>,
            2 * height * width);
      }
    }
  }
}

/// Fills packed [tile][kernel²][plane][output of the tile] from weight_at(output, plane, place).
template <class T, class WeightAt>
void pack(Index outputs, Index planes, Index area, WeightAt weight_at, T* packed) {
  const Tiles tiles(outputs);
  for (Index t = 0; t < tiles.count; ++t)
    for (Index k = 0; k < area; ++k)
      for (Index plane = 0; plane < planes; ++plane)
        for (Index o = tiles.begin(t); o < tiles.begin(t + 1); ++o)
          *packed++ = weight_at(o, plane, k);
}

}  // namespace

Index conv_row_elements(const ConvSize& s, Index lane_count) {
  return s.kernel * lane_count * larger(s.width * s.channels, s.out_width * s.filters);
}

template <class T>
void conv_forward(const ConvSize& s, const T* weights, const T* bias, const T* x, T* y,
                  Index blocks, T* packed, T* rows) {
  const Index area = s.kernel * s.kernel;
  pack(
      s.filters, s.channels, area,
      [&](Index o, Index c, Index k) { return weights[(o * s.channels + c) * area + k]; }, packed);
  const auto taps = [&s](Index out, Index length) {
    return forward_taps(out, length, s.kernel, s.stride, s.padding);
  };
  gather_all({s.channels, s.height, s.width, s.kernel}, s.filters, s.out_height, s.out_width, taps,
             static_cast<const T*>(packed), bias, x, y, blocks, rows);
}

template <class T>
void conv_input_gradient(const ConvSize& s, const T* weights, const T* dy, T* dx, Index blocks,
                         T* packed, T* rows) {
  const Index area = s.kernel * s.kernel;
  pack(
      s.channels, s.filters, area,
      [&](Index c, Index o, Index k) {
        return weights[(o * s.channels + c) * area + area - 1 - k];
      },
      packed);
  const auto taps = [&s](Index in, Index out_length) {
    return backward_taps(in, out_length, s.kernel, s.stride, s.padding);
  };
  gather_all({s.filters, s.out_height, s.out_width, s.kernel}, s.channels, s.height, s.width, taps,
             static_cast<const T*>(packed), static_cast<const T*>(nullptr), dy, dx, blocks, rows);
}

#define FAST_INSTANTIATE(T)                                                                     \
  template void conv_forward(const ConvSize&, const T*, const T*, const T*, T*, Index, T*, T*); \
  template void conv_input_gradient(const ConvSize&, const T*, const T*, T*, Index, T*, T*);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

// The gradient of the weights of a convolution, in tiles of filters x channels. Each weight has a
// vector of partial sums over all blocks. The lanes of these vectors are summed at the end.

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
