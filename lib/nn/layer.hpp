// A layer at work on this processor.
#pragma once

#include <fast/nn/model_spec.hpp>
#include <memory>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {

/// Between calls, memory belongs to the caller; layouts are those of kernels/kernels.hpp, by the
/// rank of the shape. `parameters` and `gradients` point at the layer's own first parameter.
template <class T>
class Layer {
 public:
  virtual ~Layer() = default;
  virtual void forward(const T* parameters, const T* x, T* y, Index count) = 0;
  /// Overwrites the layer's gradients, and dx unless it is null. x and y are those of forward().
  virtual void backward(const T* parameters, T* gradients, const T* x, const T* y, const T* dy,
                        T* dx, Index count) = 0;
  /// y may be x and dx may be dy.
  virtual bool in_place() const { return false; }
};

/// `input` must fit the layer.
template <class T>
std::unique_ptr<Layer<T>> make_layer(const LayerSpec& spec, const Shape& input);

/// Blocks that `count` samples fill.
template <class T>
Index block_count(Index count) {
  return (count + lanes<T> - 1) / lanes<T>;
}

/// Elements that `count` samples of a shape take up.
template <class T>
Index stored_elements(const Shape& shape, Index count) {
  Index elements = shape.size() == 3 ? block_count<T>(count) * lanes<T> : count;
  for (const Index side : shape) elements *= side;
  return elements;
}

}  // namespace fast::nn
