// Softmax of rows on GPUs. A block of threads processes a row.
#pragma once

#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

/// For the values of each thread: the largest one (the first of equals), and the sum of
/// exponentials relative to it.
struct SoftmaxScratch {
  float largest[block_size];
  std::int32_t places[block_size];  // -1: it has taken none
  double totals[block_size];

  FAST_HOST_DEVICE void join(int thread, int other, int) {
    if (places[other] < 0) return;
    const float own = largest[thread], more = largest[other];
    const bool stays = own > more || (own == more && places[thread] < places[other]);
    const float most = stays ? own : more;
    totals[thread] = totals[thread] * static_cast<double>(::expf(own - most)) +
                     totals[other] * static_cast<double>(::expf(more - most));
    largest[thread] = most;
    if (!stays) places[thread] = places[other];
  }
};

template <class V>
FAST_HOST_DEVICE void gather_row(const V* row, Index count, int thread, SoftmaxScratch& scratch) {
  Index largest = thread;
  for (Index c = thread; c < count; c += block_size)
    if (get(row, c) > get(row, largest)) largest = c;
  scratch.places[thread] = thread < count ? static_cast<std::int32_t>(largest) : -1;
  if (thread >= count) return;
  const float most = get(row, largest);
  double total = 0;
  for (Index c = thread; c < count; c += block_size)
    total += static_cast<double>(::expf(get(row, c) - most));
  scratch.largest[thread] = most;
  scratch.totals[thread] = total;
}

/// y = exp(x) / Σ exp(x) of each row. If it is `causal`, rows are those of square matrices, and
/// values behind the diagonal give 0. y may be x.
template <class V>
struct RowSoftmax {
  using Scratch = SoftmaxScratch;
  const V* x;
  V* y;
  Index rows, columns;
  bool causal = false;
  Shares shares = Shares::apart(rows);

  FAST_HOST_DEVICE Index seen(Index row) const { return causal ? row % columns + 1 : columns; }
  FAST_HOST_DEVICE void gather(Index row, int thread, Scratch& scratch) const {
    gather_row(x + row * columns, seen(row), thread, scratch);
  }
  FAST_HOST_DEVICE void finish(Index row, int thread, const Scratch& scratch) const {
    const float most = scratch.largest[0], share = 1 / static_cast<float>(scratch.totals[0]);
    for (Index c = thread; c < columns; c += block_size) {
      const Index e = row * columns + c;
      put(c < seen(row) ? ::expf(get(x, e) - most) * share : 0.0F, y, e);
    }
  }
};

/// dx = y·(dy - Σ y·dy) of each row. dx may be dy.
template <class V>
struct RowSoftmaxGradients {
  using Scratch = SumScratch<double, 1, 1>;
  const V *y, *dy;
  V* dx;
  Index rows, columns;
  Shares shares = Shares::apart(rows);

  FAST_HOST_DEVICE void gather(Index row, int thread, Scratch& scratch) const {
    double sum = 0;
    for (Index e = row * columns + thread; e < (row + 1) * columns; e += block_size)
      sum += static_cast<double>(get(y, e)) * static_cast<double>(get(dy, e));
    scratch.sums[0][0][thread] = sum;
  }
  FAST_HOST_DEVICE void finish(Index row, int thread, const Scratch& scratch) const {
    const auto sum = static_cast<float>(scratch.sums[0][0][0]);
    for (Index e = row * columns + thread; e < (row + 1) * columns; e += block_size)
      put(get(y, e) * (get(dy, e) - sum), dx, e);
  }
};

template <>
struct GpuPart<nn::Softmax> {
  template <class V>
  using Works = WorkList<RowSoftmax<V>, RowSoftmaxGradients<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Softmax&, const Ends& ends, const Values<V>& x,
                     bool) {
    const Index columns = ends.in.back(), count = build.samples() * elements_of(ends.in),
                rows = count / columns;
    const Values<V> y = build.values(count);
    build.add(RowSoftmax<V>{x.get(), y.get(), rows, columns});
    return {y, [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
              if (!wanted) return nullptr;
              Values<V> dx = build.values(count);
              build.add(RowSoftmaxGradients<V>{y.get(), dy.get(), dx.get(), rows, columns});
              return dx;
            }};
  }
};

}  // namespace fast::cuda
