// The function of GELU.
#pragma once

#include <cmath>

#include "nn/layers/function.hpp"

namespace fast::nn {

template <>
struct FunctionOf<Gelu> {
  explicit FunctionOf(const Gelu&) {}

  template <class T>
  FAST_HOST_DEVICE T value(T x) const {
    return x * share(x);
  }
  template <class T>
  FAST_HOST_DEVICE T derivative(T x) const {
    constexpr T density_at_0 = static_cast<T>(0.39894228040143267794);  // 1 / sqrt(2 pi)
    return share(x) + x * density_at_0 * std::exp(-x * x / 2);
  }

 private:
  /// The normal distribution below x.
  template <class T>
  FAST_HOST_DEVICE T share(T x) const {
    constexpr T root_of_half = static_cast<T>(0.70710678118654752440);
    return (1 + std::erf(x * root_of_half)) / 2;
  }
};

}  // namespace fast::nn
