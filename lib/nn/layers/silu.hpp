// The function of SiLU.
#pragma once

#include <cmath>

#include "nn/layers/function.hpp"

namespace fast::nn {

template <>
struct FunctionOf<Silu> {
  explicit FunctionOf(const Silu&) {}

  template <class T>
  FAST_HOST_DEVICE T value(T x) const {
    return x * sigmoid(x);
  }
  template <class T>
  FAST_HOST_DEVICE T derivative(T x) const {
    const T s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }

 private:
  template <class T>
  FAST_HOST_DEVICE T sigmoid(T x) const {
    return 1 / (1 + std::exp(-x));
  }
};

}  // namespace fast::nn
