// The function of an elementwise layer, which the host and GPUs both compile.
#pragma once

#include <cmath>
#include <fast/nn/model_spec.hpp>

#include "core/host_device.hpp"

namespace fast::nn {

/// The function f of layer `Spec`, which computes y = f(x) for each value on its own. The
/// specialization for a layer stands in layers/NAME.hpp. It is made from a `Spec`, is a plain
/// struct of numbers, and has for float and double
///   template <class T> FAST_HOST_DEVICE T value(T x) const;       f(x)
///   template <class T> FAST_HOST_DEVICE T derivative(T x) const;  f'(x)
/// Both are finite for finite x, and a NaN gives NaN.
template <class Spec>
struct FunctionOf;

template <class Spec>
concept HasFunction = requires {
  sizeof(FunctionOf<Spec>);
};

}  // namespace fast::nn
