// Works that the parts of several layers add.
#pragma once

#include <fast/core/element.hpp>
#include <numeric>
#include <type_traits>

#include "cuda/kernels/sum_elements.hpp"
#include "cuda/layers/part.hpp"

namespace fast::cuda {

inline Index elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}
inline Index area_of(const Shape& image) { return image[1] * image[2]; }

template <class V>
inline constexpr DType type_of = dtype_of_t<V>::value;
/// Parameters, which are f32, serve as they are.
template <class V>
inline constexpr bool is_exact = std::is_same_v<V, float>;

/// [outer][rows][columns] to [outer][columns][rows] in memory of its own.
template <class V, class From>
Values<V> swapped(Builder<V>& build, const From* from, Index outer, Index rows, Index columns) {
  Values<V> to = build.values(outer * rows * columns);
  build.add(SwapLast<From, V>{from, to.get(), outer, rows, columns});
  return to;
}
template <class V, class From>
Values<V> converted(Builder<V>& build, const From* from, Index count) {
  return swapped(build, from, 1, 1, count);
}

/// The gradients before a ReLU that gave y; dy itself without a ReLU.
template <class V>
Values<V> rectified(Builder<V>& build, const Values<V>& y, const Values<V>& dy, Index count,
                    bool relu) {
  if (!relu) return dy;
  Values<V> grads = build.values(count);
  build.add(RectifyGradients<V>{y.get(), dy.get(), grads.get(), count});
  return grads;
}

/// Sums of the columns of x [rows][columns].
template <class V>
void add_column_sums(Builder<V>& build, const V* x, Index rows, Index columns, float* totals) {
  const Shares shares = Shares::of<V>(rows, columns);
  const Sums parts = build.sums(shares.size());
  build.add(ColumnShares<V>{x, parts.get(), shares});
  build.add(ColumnTotals{parts.get(), totals, Shares::of_sums(shares.parts, columns)});
}

}  // namespace fast::cuda
