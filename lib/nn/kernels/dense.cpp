// A name of our own for Eigen's namespace: a user's Eigen may be compiled for another processor,
// and the linker would take one of the two.
#define Eigen fast_nn_eigen
#include <Eigen/Core>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
Eigen::Map<const Matrix<T>> map(const T* data, Index rows, Index columns) {
  return {data, rows, columns};
}
template <class T>
Eigen::Map<Matrix<T>> map(T* data, Index rows, Index columns) {
  return {data, rows, columns};
}
template <class T>
using Row = Eigen::Matrix<T, 1, Eigen::Dynamic>;

}  // namespace

template <class T>
void dense_forward(const T* weights, const T* bias, const T* x, T* y, Index count, Index inputs,
                   Index units) {
  auto out = map(y, count, units);
  out.rowwise() = Eigen::Map<const Row<T>>(bias, units);
  // Transposed: the weights, the larger factor, become the packed left side.
  out.transpose().noalias() += map(weights, units, inputs) * map(x, count, inputs).transpose();
}

template <class T>
void dense_weight_gradient(const T* x, const T* dy, T* dweights, T* dbias, Index count,
                           Index inputs, Index units) {
  const auto grads = map(dy, count, units);
  map(dweights, units, inputs).noalias() = grads.transpose() * map(x, count, inputs);
  Eigen::Map<Row<T>>(dbias, units) = grads.colwise().sum();
}

template <class T>
void dense_input_gradient(const T* weights, const T* dy, T* dx, Index count, Index inputs,
                          Index units) {
  map(dx, count, inputs).noalias() = map(dy, count, units) * map(weights, units, inputs);
}

#define FAST_INSTANTIATE(T)                                                             \
  template void dense_forward(const T*, const T*, const T*, T*, Index, Index, Index);   \
  template void dense_weight_gradient(const T*, const T*, T*, T*, Index, Index, Index); \
  template void dense_input_gradient(const T*, const T*, T*, Index, Index, Index);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
