// The functions of GELU, tanh, sigmoid and leaky ReLU.
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

template <>
struct FunctionOf<Tanh> {
  explicit FunctionOf(const Tanh&) {}

  template <class T>
  FAST_HOST_DEVICE T value(T x) const {
    return std::tanh(x);
  }
  template <class T>
  FAST_HOST_DEVICE T derivative(T x) const {
    const T y = std::tanh(x);
    return (1 - y) * (1 + y);
  }
};

template <>
struct FunctionOf<Sigmoid> {
  explicit FunctionOf(const Sigmoid&) {}

  template <class T>
  FAST_HOST_DEVICE T value(T x) const {
    return 1 / (1 + std::exp(-x));
  }
  template <class T>
  FAST_HOST_DEVICE T derivative(T x) const {
    return value(x) * value(-x);
  }
};

template <>
struct FunctionOf<LeakyRelu> {
  explicit FunctionOf(const LeakyRelu& layer) : slope(layer.slope) {}
  double slope;

  template <class T>
  FAST_HOST_DEVICE T value(T x) const {
    return x > 0 ? x : static_cast<T>(slope) * x;
  }
  template <class T>
  FAST_HOST_DEVICE T derivative(T x) const {
    return x > 0 ? 1 : static_cast<T>(slope);
  }
};

}  // namespace fast::nn
