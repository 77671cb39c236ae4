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
void add(const T* a, const T* b, T* out, Index count) {
  FAST_INDEPENDENT
  for (Index i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

template <class T>
void add_scaled(T* __restrict sum, const T* __restrict x, T factor, std::size_t count, bool first) {
  if (first)
    for (std::size_t i = 0; i < count; ++i) sum[i] = factor * x[i];
  else
    for (std::size_t i = 0; i < count; ++i) sum[i] += factor * x[i];
}

template <class T>
void scale(T* x, T factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

template <class T>
double sum_of_squares(const T* x, std::size_t count) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (std::size_t k = 0; k < 8; ++k)
      sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

#define FAST_INSTANTIATE(T)                                     \
  template void to_blocks(const float*, T*, Index, Index);      \
  template void from_blocks(const T*, T*, Index, Index);        \
  template void relu_forward(const T*, T*, Index);              \
  template void relu_backward(const T*, const T*, T*, Index);   \
  template void add(const T*, const T*, T*, Index);             \
  template void add_scaled(T*, const T*, T, std::size_t, bool); \
  template void scale(T*, T, std::size_t);                      \
  template double sum_of_squares(const T*, std::size_t);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE
template void to_blocks(const double*, double*, Index, Index);

}  // namespace fast::nn
