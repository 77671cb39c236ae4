// A name of our own for Eigen's namespace, as in dense.cpp.
#define Eigen fast_nn_eigen
#include <Eigen/Core>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// The part of a head in the steps of a sample.
template <class T>
using Head = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
template <class T>
using Row = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>;
template <class T>
using ConstRow = Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>>;

template <class T>
void softmax_row(const T* x, T* y, Index count) {
  const ConstRow<T> in(x, count);
  Row<T> out(y, count);
  out = (in - in.maxCoeff()).exp();
  out /= out.sum();
}

template <class T>
void softmax_row_backward(const T* y, const T* dy, T* dx, Index count) {
  const ConstRow<T> out(y, count), grads(dy, count);
  Row<T>(dx, count) = out * (grads - (out * grads).sum());
}

/// Queries, keys and values of a head, or their gradients.
template <class T>
struct Projected {
  Projected(const AttentionSize& size, T* qkv, Index sample, Index head)
      : query(part(size, qkv, sample, head, 0)),
        key(part(size, qkv, sample, head, 1)),
        value(part(size, qkv, sample, head, 2)) {}
  static Head<T> part(const AttentionSize& s, T* qkv, Index sample, Index head, Index which) {
    return {qkv + (sample * s.steps * 3 + which) * s.features() + head * s.width, s.steps, s.width,
            Eigen::OuterStride<>(3 * s.features())};
  }
  Head<T> query, key, value;
};

template <class T>
Head<T> sums_of(const AttentionSize& s, T* sums, Index sample, Index head) {
  return {sums + sample * s.steps * s.features() + head * s.width, s.steps, s.width,
          Eigen::OuterStride<>(s.features())};
}

template <class T>
T scale_of(const AttentionSize& size) {
  return T{1} / Eigen::numext::sqrt(static_cast<T>(size.width));
}

/// Calls f(sample, head, weights of the head). Unless `apart`, all heads have the same weights.
template <class T, class F>
void each_head(const AttentionSize& size, T* weights, bool apart, const F& f) {
  const Index step = apart ? size.steps * size.steps : 0;
  for (Index sample = 0; sample < size.samples; ++sample)
    for (Index head = 0; head < size.heads; ++head, weights += step)
      f(sample, head, Eigen::Map<Matrix<T>>(weights, size.steps, size.steps));
}

}  // namespace

template <class T>
void softmax_forward(const T* x, T* y, Index rows, Index columns) {
  for (Index r = 0; r < rows; ++r) softmax_row(x + r * columns, y + r * columns, columns);
}

template <class T>
void softmax_backward(const T* y, const T* dy, T* dx, Index rows, Index columns) {
  for (Index e = 0; e < rows * columns; e += columns)
    softmax_row_backward(y + e, dy + e, dx + e, columns);
}

template <class T>
void attention_forward(const AttentionSize& size, const T* qkv, T* weights, T* sums, bool keep) {
  each_head(size, weights, keep, [&](Index sample, Index head, Eigen::Map<Matrix<T>> of_head) {
    const Projected<T> in(size, const_cast<T*>(qkv), sample, head);
    of_head.noalias() = scale_of<T>(size) * (in.query * in.key.transpose());
    for (Index step = 0; step < size.steps; ++step) {
      T* row = of_head.data() + step * size.steps;
      const Index seen = size.causal ? step + 1 : size.steps;
      softmax_row(row, row, seen);
      for (Index later = seen; later < size.steps; ++later) row[later] = 0;
    }
    sums_of(size, sums, sample, head).noalias() = of_head * in.value;
  });
}

template <class T>
void attention_backward(const AttentionSize& size, const T* qkv, const T* weights, const T* dsums,
                        T* dqkv, T* scratch) {
  Eigen::Map<Matrix<T>> grads(scratch, size.steps, size.steps);
  each_head(size, const_cast<T*>(weights), true,
            [&](Index sample, Index head, Eigen::Map<Matrix<T>> of_head) {
              const Projected<T> in(size, const_cast<T*>(qkv), sample, head);
              Projected<T> out(size, dqkv, sample, head);
              const Head<T> dsum = sums_of(size, const_cast<T*>(dsums), sample, head);
              out.value.noalias() = of_head.transpose() * dsum;
              grads.noalias() = dsum * in.value.transpose();
              softmax_backward(static_cast<const T*>(of_head.data()),
                               static_cast<const T*>(scratch), scratch, size.steps, size.steps);
              out.query.noalias() = scale_of<T>(size) * (grads * in.key);
              out.key.noalias() = scale_of<T>(size) * (grads.transpose() * in.query);
            });
}

#define FAST_INSTANTIATE(T)                                                      \
  template void softmax_forward(const T*, T*, Index, Index);                     \
  template void softmax_backward(const T*, const T*, T*, Index, Index);          \
  template void attention_forward(const AttentionSize&, const T*, T*, T*, bool); \
  template void attention_backward(const AttentionSize&, const T*, const T*, const T*, T*, T*);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
