#include "nn/layers/layer_entry.hpp"

#include <cmath>

#include "nn/layers/activation.hpp"
#include "nn/layers/elementwise.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

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

struct TanhKind : ElementwiseKind<Tanh> {
  static std::string describe(const Tanh&) { return "tanh"; }
  static std::string to_onnx(const Tanh&, const std::string& in, OnnxGraph& graph) {
    return graph.node("Tanh", {in});
  }
};

struct SigmoidKind : ElementwiseKind<Sigmoid> {
  static std::string describe(const Sigmoid&) { return "sigmoid"; }
  static std::string to_onnx(const Sigmoid&, const std::string& in, OnnxGraph& graph) {
    return graph.node("Sigmoid", {in});
  }
};

struct LeakyReluKind : ElementwiseKind<LeakyRelu> {
  static void keys(LeakyRelu& layer, Keys& keys) { keys.optional("slope", layer.slope); }
  static std::string describe(const LeakyRelu& layer) {
    return fmt::format("leaky relu, slope {}", layer.slope);
  }
  static Shape output(const LeakyRelu& layer, const Shape& in) {
    demand(layer.slope >= 0 && layer.slope <= 1, "slope {} is not in [0, 1]", layer.slope);
    return in;
  }
  static std::string to_onnx(const LeakyRelu& layer, const std::string& in, OnnxGraph& graph) {
    return graph.node("LeakyRelu", {in},
                      {onnx::attribute("alpha", static_cast<float>(layer.slope))});
  }
};

/// Rows are the vectors, or the steps of the sequences.
template <class T>
class SoftmaxLayer final : public Layer<T> {
 public:
  SoftmaxLayer(const Softmax&, const Shape& in)
      : steps_(in.size() == 2 ? in[0] : 1), features_(in.back()) {}

  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    softmax_forward(x, y, steps_ * pass.count, features_);
  }
  void backward(const T*, T*, const T*, const T* y, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) softmax_backward(y, dy, dx, steps_ * count, features_);
  }

 private:
  Index steps_, features_;
};

struct SoftmaxKind : KindOf<Softmax, SoftmaxLayer> {
  static std::string describe(const Softmax&) { return "softmax"; }
  static Shape output(const Softmax&, const Shape& in) {
    demand(in.size() <= 2,
           "it takes vectors and sequences, its input is {}; put a flatten layer before it",
           nn::describe(in));
    return in;
  }
  static std::string to_onnx(const Softmax&, const std::string& in, OnnxGraph& graph) {
    return graph.node("Softmax", {in}, {onnx::attribute("axis", std::int64_t{-1})});
  }
};

}  // namespace

const LayerEntry entries::gelu = entry_for<GeluKind>();
const LayerEntry entries::tanh = entry_for<TanhKind>();
const LayerEntry entries::sigmoid = entry_for<SigmoidKind>();
const LayerEntry entries::leaky_relu = entry_for<LeakyReluKind>();
const LayerEntry entries::softmax = entry_for<SoftmaxKind>();

}  // namespace fast::nn
