// A layer on the CPU.
#pragma once

#include <cstdint>
#include <fast/core/memory.hpp>
#include <fast/nn/model_spec.hpp>
#include <memory>
#include <numeric>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {

/// Arguments of a forward pass besides the parameters.
template <class T>
struct Pass {
  Index count;                           // of samples
  bool training = true;                  // evaluation does not change the buffers
  T* buffers = nullptr;                  // the layer's own first buffer
  const std::uint64_t* noise = nullptr;  // by sample, for layers that choose at random
  Index place = 0;                       // of the layer in the model, likewise
};

/// The caller owns all memory. kernels/kernels.hpp describes the layout of images (shapes of three
/// sides) and of vectors and sequences (others). `parameters` and `gradients` point at the first
/// parameter of the layer.
template <class T>
class Layer {
 public:
  virtual ~Layer() = default;
  virtual void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) = 0;
  /// Overwrites the gradients of the layer and, unless it is null, dx. x and y are those of the
  /// last forward(), which was one in training.
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

/// Number of blocks for `count` samples.
template <class T>
Index block_count(Index count) {
  return (count + lanes<T> - 1) / lanes<T>;
}

/// Number of elements of `count` samples of a shape.
template <class T>
Index stored_elements(const Shape& shape, Index count) {
  Index elements = shape.size() == 3 ? block_count<T>(count) * lanes<T> : count;
  for (const Index side : shape) elements *= side;
  return elements;
}

/// Makes the buffer at least this large. Its contents are lost if it grows.
template <class T>
void grow(AlignedBuffer& buffer, Index elements) {
  const std::size_t size_bytes = static_cast<std::size_t>(elements) * sizeof(T);
  if (buffer.size_bytes() < size_bytes) buffer = AlignedBuffer(size_bytes);
}

}  // namespace fast::nn
