// A layer at work on this processor.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/nn/model_spec.hpp>
#include <memory>
#include <numeric>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {

/// What a layer is told of a forward pass, besides its parameters.
template <class T>
struct Pass {
  Index count;           // of samples
  bool training = true;  // else evaluation, which leaves the buffers as they are
  T* buffers = nullptr;  // the layer's own first buffer
};

/// Between calls, memory belongs to the caller; layouts are those of kernels/kernels.hpp, by the
/// rank of the shape. `parameters` and `gradients` point at the layer's own first parameter.
template <class T>
class Layer {
 public:
  virtual ~Layer() = default;
  virtual void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) = 0;
  /// Overwrites the layer's gradients, and dx unless it is null. x and y are those of the last
  /// forward(), one in training.
  virtual void backward(const T* parameters, T* gradients, const T* x, const T* y, const T* dy,
                        T* dx, Index count) = 0;
  /// y may be x and dx may be dy.
  virtual bool in_place() const { return false; }
  virtual Index parameter_count() const { return 0; }
  virtual Index buffer_count() const { return 0; }
};

/// `input` must fit the layer. With `relu`, which the layer's row must allow, a ReLU is included.
template <class T>
std::unique_ptr<Layer<T>> make_layer(const LayerSpec& spec, const Shape& input, bool relu = false);
template <>
std::unique_ptr<Layer<float>> make_layer(const LayerSpec& spec, const Shape& input, bool relu);
template <>
std::unique_ptr<Layer<double>> make_layer(const LayerSpec& spec, const Shape& input, bool relu);

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

/// Makes room for so many elements; what was in the buffer is lost when it grows.
template <class T>
void grow(AlignedBuffer& buffer, Index elements) {
  const std::size_t size_bytes = static_cast<std::size_t>(elements) * sizeof(T);
  if (buffer.size_bytes() < size_bytes) buffer = AlignedBuffer(size_bytes);
}

}  // namespace fast::nn
