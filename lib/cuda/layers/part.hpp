// The part of a layer for GPUs: a specialization for each type of specification.
#pragma once

#include <algorithm>
#include <fast/nn/model_spec.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/kernels/layer_elements.hpp"

namespace fast::cuda {

using nn::Shape;

template <class V>
class Builder;

/// Memory of a program: values between layers, and sums.
template <class V>
using Values = std::shared_ptr<V>;
using Sums = std::shared_ptr<float>;

/// Adds the works from the gradients of a layer's outputs to those of its inputs. Gives null unless
/// the latter are `wanted`.
template <class V>
using Backward = std::function<Values<V>(const Values<V>& dy, bool wanted)>;

/// The result of the forward works of a layer.
template <class V>
struct Made {
  Values<V> y;
  Backward<V> backward;
  bool trained = false;  ///< the layer has parameters
};

/// The works of a list of layers and the backward pass through them.
template <class V>
struct Chain {
  struct Stage {
    Backward<V> backward;
    bool trained;
  };
  Values<V> y;
  std::vector<Stage> stages;

  bool trained() const {
    return std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.trained; });
  }
};

/// Shapes of a layer's input and output.
struct Ends {
  Shape in, out;
};

template <class... Works>
struct WorkList {};

/// The part of layer `Spec`, in layers/NAME.hpp. It has
///   template <class V> using Works = WorkList<...>;      the works that it adds, each one kernel
///   static constexpr bool takes_relu;                    add() can include a ReLU after the layer
///   template <class V> static Made<V> add(Builder<V>& build, const Spec& spec, const Ends& ends,
///                                         const Values<V>& x, bool relu);
/// A layer without a part does not run on GPUs.
template <class Spec>
struct GpuPart;

template <class Spec>
concept HasGpuPart = requires {
  sizeof(GpuPart<Spec>);
};

}  // namespace fast::cuda
