// The average of a round for each element. Devices and the host compile it, so that tests need no
// device.
#pragma once

#include "cuda/device/elements.hpp"

namespace fast::cuda {

/// The end of a round as in mixing::average(). Degree > 0 unrolls the loop over neighbors.
template <class T, class Stored, int Degree, int Capacity>
struct AverageElements {
  T* current;
  Stored* next;
  const Stored* own;
  const Stored* values[Capacity];
  T factors[Capacity];
  int degree;

  template <int Width>
  FAST_HOST_DEVICE void at(std::size_t e) const {
    T m[Width], x[Width], value[Degree > 0 ? Degree : 1][Width];
    load(own + e, m);
    if (current != nullptr) load(current + e, x);
    for (int j = 0; j < Degree; ++j) load(values[j] + e, value[j]);
    for (int i = 0; i < Width && current == nullptr; ++i) x[i] = m[i];
    const int end = Degree > 0 ? Degree : degree;
    for (int j = 0; j < end; ++j) {
      T(&of)[Width] = value[Degree > 0 ? j : 0];
      if (Degree == 0) load(values[j] + e, of);
      for (int i = 0; i < Width; ++i) x[i] = fused(factors[j], of[i] - m[i], x[i]);
    }
    if (current != nullptr) store(x, current + e);
    store(x, next + e);
  }
};

}  // namespace fast::cuda
