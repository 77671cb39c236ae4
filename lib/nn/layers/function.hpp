// The function of an elementwise layer, which the host and GPUs both compile.
#pragma once

#include <fast/nn/model_spec.hpp>

#include "core/host_device.hpp"

namespace fast::nn {

/// The function f of an elementwise layer, y = f(x). The specialization for a layer is in
/// layers/NAME.hpp. Its constructor takes a `Spec`, its members are plain numbers, and for float
/// and double it has
///   template <class T> FAST_HOST_DEVICE T value(T x) const;       f(x)
///   template <class T> FAST_HOST_DEVICE T derivative(T x) const;  f'(x)
/// Both are finite for finite x. NaN gives NaN.
template <class Spec>
struct FunctionOf;

template <class Spec>
concept HasFunction = requires {
  sizeof(FunctionOf<Spec>);
};

}  // namespace fast::nn
