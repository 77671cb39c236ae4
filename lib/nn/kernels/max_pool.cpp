#include "nn/kernels/vector.hpp"

namespace fast::nn {
namespace {

/// The part of a window within a side of `length`.
struct Extent {
  Index begin, end;
};
inline Extent extent(const PoolSize& s, Index window, Index length) {
  const Index begin = window * s.stride - s.padding, end = begin + s.size;
  return {begin < 0 ? 0 : begin, end < length ? end : length};
}

/// Calls visit(index of the input vector) for each place of the window of output (row, column).
template <class Visit>
void for_window(const PoolSize& s, Extent rows, Index column, Visit visit) {
  const Extent columns = extent(s, column, s.width);
  for (Index i = rows.begin; i < rows.end; ++i)
    for (Index j = columns.begin; j < columns.end; ++j) visit((i * s.width + j) * 2);
}

/// Processes half of the lanes of one window. The first of equal largest values gets the gradient.
template <class T>
void scatter(const PoolSize& s, Extent rows, Index column, const Vector<T>* x, Vector<T> largest,
             Vector<T> grad, Vector<T>* dx) {
  for_window(s, rows, column, [&](Index at) {
    const auto match = x[at] == largest;
    dx[at] += match ? grad : Vector<T>{};
    grad = match ? Vector<T>{} : grad;
  });
}

}  // namespace

template <class T>
void max_pool_forward(const PoolSize& s, const T* x, T* y, Index planes) {
  const Vector<T>* in = vectors(x);
  Vector<T>* out = vectors(y);
  for (Index plane = 0; plane < planes; ++plane, in += 2 * s.height * s.width)
    for (Index row = 0; row < s.out_height; ++row) {
      const Extent rows = extent(s, row, s.height);
      for (Index column = 0; column < s.out_width; ++column, out += 2) {
        const Index first = (rows.begin * s.width + extent(s, column, s.width).begin) * 2;
        Vector<T> a = in[first], b = in[first + 1];
        for_window(s, rows, column, [&](Index at) {
          a = in[at] <= a || a != a ? a : in[at];  // a NaN stays one
          b = in[at + 1] <= b || b != b ? b : in[at + 1];
        });
        out[0] = a;
        out[1] = b;
      }
    }
}

template <class T>
void max_pool_backward(const PoolSize& s, const T* x, const T* y, const T* dy, T* dx,
                       Index planes) {
  const Index plane_vectors = 2 * s.height * s.width;
  for (Index plane = 0; plane < planes; ++plane) {
    const Vector<T>* in = vectors(x) + plane * plane_vectors;
    Vector<T>* grads = vectors(dx) + plane * plane_vectors;
    for (Index i = 0; i < plane_vectors; ++i) grads[i] = Vector<T>{};
    Index o = plane * s.out_height * s.out_width * 2;
    for (Index row = 0; row < s.out_height; ++row)
      for (Index column = 0; column < s.out_width; ++column)
        for (Index half = 0; half < 2; ++half, ++o)
          scatter<T>(s, extent(s, row, s.height), column, in + half, vectors(y)[o], vectors(dy)[o],
                     grads + half);
  }
}

#define FAST_INSTANTIATE(T)                                             \
  template void max_pool_forward(const PoolSize&, const T*, T*, Index); \
  template void max_pool_backward(const PoolSize&, const T*, const T*, const T*, T*, Index);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
