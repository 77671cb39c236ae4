// A list of layers and the memory between them.
#pragma once

#include <fast/core/memory.hpp>

#include <array>
#include <vector>

#include "nn/layer.hpp"

namespace fast::nn {

/// Does not write to its input or to the gradients given to backward().
template <class T>
class Sequence {
 public:
  /// The layers must fit each other. A layer whose row allows it includes the ReLU that follows it.
  Sequence(const std::vector<LayerSpec>& layers, const Shape& input);

  Index parameter_count() const { return parameter_count_; }
  Index buffer_count() const { return buffer_count_; }

  /// The outputs of the last layer, valid until the next call, or x if there are no layers. x must
  /// outlive backward().
  const T* forward(const T* parameters, const T* x, const Pass<T>& pass);

  /// As Layer::backward(). If dx is null, gradients that no parameter needs are not computed. There
  /// must be at least one layer.
  void backward(const T* parameters, T* gradients, const T* dy, T* dx, Index count);

 private:
  struct Stage {
    std::unique_ptr<Layer<T>> layer;
    Index parameters, buffers;  // offsets of the first
    Shape output_shape;
    std::size_t number;         // of the layer in the list
    AlignedBuffer output = {};  // empty when it works in place
  };

  void append(std::unique_ptr<Layer<T>> layer, Shape output, std::size_t number);
  bool in_place(std::size_t i) const { return i > 0 && stages_[i].layer->in_place(); }
  void reserve(Index count);

  std::vector<Stage> stages_;
  Index parameter_count_ = 0, buffer_count_ = 0;
  std::size_t first_trained_ = 0;       // the first stage with parameters
  std::array<AlignedBuffer, 2> grads_;  // gradients of outputs, in turns
  std::vector<const T*> values_;        // input and outputs of the last forward()
  Index capacity_ = 0;
};

extern template class Sequence<float>;
extern template class Sequence<double>;

}  // namespace fast::nn
