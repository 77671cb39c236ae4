// A name of our own for Eigen's namespace, as in dense.cpp.
#define Eigen fast_nn_eigen
#include <Eigen/Core>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// The rows of a step have the distance of a whole sequence.
template <class T>
using Rows = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
template <class T>
using Row = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>;

template <class T>
Rows<T> step_of(T* values, const LstmSize& size, Index step, Index columns) {
  return {values + step * columns, size.samples, columns,
          Eigen::OuterStride<>(size.steps * columns)};
}
template <class T>
Eigen::Map<const Matrix<T>> map(const T* data, Index rows, Index columns) {
  return {data, rows, columns};
}

/// Computes gates, cells and outputs of one step of one sample from the sums of the gates.
template <class T>
void advance(Index hidden, T* gates, const T* cells_before, T* cells, T* outputs) {
  const auto unit = [hidden](T* at) { return Row<T>(at, hidden); };
  Row<T> in = unit(gates), forget = unit(gates + hidden), fresh = unit(gates + 2 * hidden),
         out = unit(gates + 3 * hidden), cell = unit(cells);
  for (Row<T>* gate : {&in, &forget, &out}) *gate = (T{1} + (-*gate).exp()).inverse();
  fresh = fresh.tanh();
  cell = in * fresh;
  if (cells_before != nullptr) cell += forget * unit(const_cast<T*>(cells_before));
  unit(outputs) = out * cell.tanh();
}

/// Gradients with respect to the sums of the gates, for one step of one sample. `dcells` comes from
/// the following step and is updated for the step before.
template <class T>
void retreat(Index hidden, const T* gates, const T* cells_before, const T* cells, const T* doutputs,
             T* dcells, T* grads) {
  for (Index u = 0; u < hidden; ++u) grads[3 * hidden + u] = cells[u];
  Row<T>(grads + 3 * hidden, hidden) = Row<T>(grads + 3 * hidden, hidden).tanh();
  FAST_INDEPENDENT
  for (Index u = 0; u < hidden; ++u) {
    const T in = gates[u], forget = gates[hidden + u], fresh = gates[2 * hidden + u];
    const T out = gates[3 * hidden + u], shown = grads[3 * hidden + u];
    const T before = cells_before == nullptr ? T{0} : cells_before[u];
    const T dcell = dcells[u] + doutputs[u] * out * (1 - shown * shown);
    grads[u] = dcell * fresh * in * (1 - in);
    grads[hidden + u] = dcell * before * forget * (1 - forget);
    grads[2 * hidden + u] = dcell * in * (1 - fresh * fresh);
    grads[3 * hidden + u] = doutputs[u] * shown * out * (1 - out);
    dcells[u] = dcell * forget;
  }
}

}  // namespace

template <class T>
void lstm_forward(const LstmSize& size, const LstmWeights<T>& weights, const T* x,
                  const LstmTrace<T>& trace) {
  const Index hidden = size.hidden, gates = size.gates();
  dense_forward(weights.inputs, weights.bias, x, trace.gates, size.rows(), size.inputs, gates);
  for (Index step = 0; step < size.steps; ++step) {
    if (step > 0)
      step_of(trace.gates, size, step, gates).noalias() +=
          step_of(trace.outputs, size, step - 1, hidden) *
          map(weights.hidden, gates, hidden).transpose();
    for (Index row = step; row < size.rows(); row += size.steps)
      advance(hidden, trace.gates + row * gates,
              step == 0 ? nullptr : trace.cells + (row - 1) * hidden, trace.cells + row * hidden,
              trace.outputs + row * hidden);
  }
}

template <class T>
void lstm_backward(const LstmSize& size, const LstmWeights<T>& weights, const T* x,
                   const LstmTrace<T>& trace, const T* dy, bool every_step,
                   const LstmGradients<T>& gradients, T* dx, T* grads, T* carry) {
  const Index hidden = size.hidden, gates = size.gates(), units = size.samples * hidden;
  T *doutputs = carry, *dcells = carry + units;
  for (Index u = 0; u < 2 * units; ++u) carry[u] = 0;
  Eigen::Map<Matrix<T>> dhidden(gradients.hidden, gates, hidden),
      carried(doutputs, size.samples, hidden);
  dhidden.setZero();
  for (Index step = size.steps; step-- > 0;) {
    if (step + 1 < size.steps)
      carried.noalias() =
          step_of(grads, size, step + 1, gates) * map(weights.hidden, gates, hidden);
    if (every_step)
      carried += step_of(const_cast<T*>(dy), size, step, hidden);
    else if (step + 1 == size.steps)
      carried += map(dy, size.samples, hidden);
    for (Index sample = 0; sample < size.samples; ++sample) {
      const Index row = sample * size.steps + step;
      retreat(hidden, trace.gates + row * gates,
              step == 0 ? nullptr : trace.cells + (row - 1) * hidden, trace.cells + row * hidden,
              doutputs + sample * hidden, dcells + sample * hidden, grads + row * gates);
    }
    if (step > 0)
      dhidden.noalias() += step_of(grads, size, step, gates).transpose() *
                           step_of(trace.outputs, size, step - 1, hidden);
  }
  dense_weight_gradient(static_cast<const T*>(x), static_cast<const T*>(grads), gradients.inputs,
                        gradients.bias, size.rows(), size.inputs, gates);
  if (dx != nullptr)
    dense_input_gradient(weights.inputs, static_cast<const T*>(grads), dx, size.rows(), size.inputs,
                         gates);
}

#define FAST_INSTANTIATE(T)                                                                     \
  template void lstm_forward(const LstmSize&, const LstmWeights<T>&, const T*,                  \
                             const LstmTrace<T>&);                                              \
  template void lstm_backward(const LstmSize&, const LstmWeights<T>&, const T*,                 \
                              const LstmTrace<T>&, const T*, bool, const LstmGradients<T>&, T*, \
                              T*, T*);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
