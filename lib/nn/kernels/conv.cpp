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

}  // namespace fast::nn
