// Works that the parts of several layers add.
#pragma once

#include <fast/core/element.hpp>
#include <fast/nn/model_spec.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "nn/cuda/layer_elements.hpp"
#include "nn/cuda/sum_elements.hpp"

namespace fast::cuda {

// The part of a layer for GPUs: a specialization for each type of specification.

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

inline Index elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}
inline Index area_of(const Shape& image) { return image[1] * image[2]; }

template <class V>
inline constexpr DType type_of = dtype_of<V>;
/// Parameters, which are f32, serve as they are.
template <class V>
inline constexpr bool is_exact = std::is_same_v<V, float>;

/// [outer][rows][columns] to [outer][columns][rows] in memory of its own.
template <class V, class From>
Values<V> swapped(Builder<V>& build, const From* from, Index outer, Index rows, Index columns) {
  Values<V> to = build.values(outer * rows * columns);
  build.add(SwapLast<From, V>{from, to.get(), outer, rows, columns});
  return to;
}
template <class V, class From>
Values<V> converted(Builder<V>& build, const From* from, Index count) {
  return swapped(build, from, 1, 1, count);
}

/// The gradients before a ReLU that gave y; dy itself without a ReLU.
template <class V>
Values<V> rectified(Builder<V>& build, const Values<V>& y, const Values<V>& dy, Index count,
                    bool relu) {
  if (!relu) return dy;
  Values<V> grads = build.values(count);
  build.add(RectifyGradients<V>{y.get(), dy.get(), grads.get(), count});
  return grads;
}

/// Sums of the columns of x [rows][columns].
template <class V>
void add_column_sums(Builder<V>& build, const V* x, Index rows, Index columns, float* totals) {
  const Shares shares = Shares::of<V>(rows, columns);
  const Sums parts = build.sums(shares.size());
  build.add(ColumnShares<V>{x, parts.get(), shares});
  build.add(ColumnTotals{parts.get(), totals, Shares::of_sums(shares.parts, columns)});
}

}  // namespace fast::cuda
