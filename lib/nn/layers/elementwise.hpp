// Elementwise layers on the CPU.
#pragma once

#include "nn/layers/function.hpp"
#include "nn/layers/layer_entry.hpp"

namespace fast::nn {

template <class T, class Function>
class ElementwiseLayer final : public Layer<T> {
 public:
  ElementwiseLayer(const Function& function, const Shape& shape)
      : function_(function), shape_(shape) {}

  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    const Index count = stored_elements<T>(shape_, pass.count);
    for (Index i = 0; i < count; ++i) y[i] = function_.value(x[i]);
  }
  void backward(const T*, T*, const T* x, const T*, const T* dy, T* dx, Index count) override {
    if (dx == nullptr) return;
    const Index values = stored_elements<T>(shape_, count);
    for (Index i = 0; i < values; ++i) dx[i] = dy[i] * function_.derivative(x[i]);
  }

 private:
  Function function_;
  Shape shape_;
};

/// The common part of the rows of elementwise layers. A layer adds `describe` and `to_onnx`.
template <class S>
struct ElementwiseKind {
  using Spec = S;

  static Shape output(const Spec&, const Shape& in) { return in; }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const Spec& spec, const Shape& in) {
    return std::make_unique<ElementwiseLayer<T, FunctionOf<Spec>>>(FunctionOf<Spec>(spec), in);
  }
};

}  // namespace fast::nn
