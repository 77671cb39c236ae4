#include "nn/kernels/vector.hpp"

namespace fast::nn {

template <class From, class T>
void to_blocks(const From* samples, T* blocks, Index count, Index elements) {
  for (Index first = 0; first < count; first += lanes<T>) {
    T* block = blocks + first * elements;
    const Index present = smaller(lanes<T>, count - first);
    for (Index e = 0; e < elements; ++e)
      for (Index lane = 0; lane < lanes<T>; ++lane)
        block[e * lanes<T> + lane] =
            lane < present ? static_cast<T>(samples[(first + lane) * elements + e]) : T{0};
  }
}

template <class T>
void from_blocks(const T* blocks, T* samples, Index count, Index elements) {
  for (Index i = 0; i < count; ++i) {
    const T* lane = blocks + i / lanes<T> * lanes<T> * elements + i % lanes<T>;
    for (Index e = 0; e < elements; ++e) samples[i * elements + e] = lane[e * lanes<T>];
  }
}

template <class T>
void relu_forward(const T* x, T* y, Index count) {
  for (Index i = 0; i < count; ++i) y[i] = x[i] < 0 ? T{0} : x[i];  // a NaN stays one
}

template <class T>
void relu_backward(const T* y, const T* dy, T* dx, Index count) {
  for (Index i = 0; i < count; ++i) dx[i] = y[i] > 0 ? dy[i] : T{0};
}

template <class T>
void sgd_step(T* __restrict weights, const T* __restrict gradients, T* __restrict momentum,
              std::size_t count, T learning_rate, T beta, T weight_decay) {
  if (beta == 0) {
    for (std::size_t i = 0; i < count; ++i)
      weights[i] -= learning_rate * (gradients[i] + weight_decay * weights[i]);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const T velocity = beta * momentum[i] + (gradients[i] + weight_decay * weights[i]);
    momentum[i] = velocity;
    weights[i] -= learning_rate * velocity;
  }
}

#define FAST_INSTANTIATE(T)                                   \
  template void to_blocks(const float*, T*, Index, Index);    \
  template void from_blocks(const T*, T*, Index, Index);      \
  template void relu_forward(const T*, T*, Index);            \
  template void relu_backward(const T*, const T*, T*, Index); \
  template void sgd_step(T*, const T*, T*, std::size_t, T, T, T);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE
template void to_blocks(const double*, double*, Index, Index);

}  // namespace fast::nn
