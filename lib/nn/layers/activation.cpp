#include "nn/layers/layer_entry.hpp"

#include <cmath>

#include "nn/layers/elementwise.hpp"
#include "nn/layers/gelu.hpp"
#include "nn/onnx/graph.hpp"

namespace fast::nn {
namespace {

template <class T>
class ReluLayer final : public Layer<T> {
 public:
  ReluLayer(const Relu&, const Shape& shape) : shape_(shape) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    relu_forward(x, y, stored_elements<T>(shape_, pass.count));
  }
  void backward(const T*, T*, const T*, const T* y, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) relu_backward(y, dy, dx, stored_elements<T>(shape_, count));
  }
  bool in_place() const override { return true; }

 private:
  Shape shape_;
};

struct ReluKind : KindOf<Relu, ReluLayer> {
  static std::string describe(const Relu&) { return "relu"; }
  static Shape output(const Relu&, const Shape& in) { return in; }
  static std::string to_onnx(const Relu&, const std::string& in, OnnxGraph& graph) {
    return graph.node("Relu", {in});
  }
};

}  // namespace

const LayerEntry entries::relu = entry_for<ReluKind>();

namespace {

struct GeluKind : ElementwiseKind<Gelu> {
  static std::string describe(const Gelu&) { return "gelu"; }
  static std::string to_onnx(const Gelu&, const std::string& in, OnnxGraph& graph) {
    const std::string scaled = graph.node("Mul", {in, graph.constant({std::sqrt(0.5)})});
    const std::string twice =
        graph.node("Add", {graph.node("Erf", {scaled}), graph.constant({1.0})});
    return graph.node("Mul", {graph.node("Mul", {in, graph.constant({0.5})}), twice});
  }
};

}  // namespace

const LayerEntry entries::gelu = entry_for<GeluKind>();

}  // namespace fast::nn
