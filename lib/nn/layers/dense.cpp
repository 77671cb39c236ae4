#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

template <class T>
class DenseLayer final : public Layer<T> {
 public:
  DenseLayer(const Dense& spec, const Shape& input)
      : steps_(input.size() == 2 ? input[0] : 1), inputs_(input.back()), units_(spec.units) {}

  void forward(const T* parameters, const T* x, T* y, const Pass<T>& pass) override {
    dense_forward(parameters, parameters + weights(), x, y, steps_ * pass.count, inputs_, units_);
  }
  void backward(const T* parameters, T* gradients, const T* x, const T*, const T* dy, T* dx,
                Index count) override {
    const Index rows = steps_ * count;
    dense_weight_gradient(x, dy, gradients, gradients + weights(), rows, inputs_, units_);
    if (dx != nullptr) dense_input_gradient(parameters, dy, dx, rows, inputs_, units_);
  }

  Index parameter_count() const override { return weights() + units_; }

 private:
  Index weights() const { return inputs_ * units_; }
  Index steps_, inputs_, units_;
};

struct DenseKind : KindOf<Dense, DenseLayer> {
  static constexpr const char* prefix = "fc";

  static void keys(Dense& dense, Keys& keys) { keys.outputs("units", dense.units); }
  static std::string describe(const Dense& dense) { return fmt::format("dense {}", dense.units); }
  static Shape output(const Dense& dense, const Shape& in) {
    demand(in.size() <= 2,
           "it takes vectors and sequences, its input is {}; put a flatten layer before it",
           nn::describe(in));
    demand(dense.units > 0, "units must be positive");
    if (in.size() == 2) return {in[0], dense.units};
    return {dense.units};
  }
  static void list_tensors(const Dense& dense, const Shape& in, Inventory& to) {
    to.add_weight("weight", {dense.units, in.back()}, in.back());
    to.add_constant("bias", {dense.units}, 0);
  }
  static std::string to_onnx(const Dense&, const std::string& in, OnnxGraph& graph) {
    if (graph.input_shape().size() == 2) {
      const std::string turned = graph.node("Transpose", {graph.tensor("weight")});
      return graph.node("Add", {graph.node("MatMul", {in, turned}), graph.tensor("bias")});
    }
    return graph.node("Gemm", {in, graph.tensor("weight"), graph.tensor("bias")},
                      {onnx::attribute("transB", std::int64_t{1})});
  }
};

}  // namespace

const LayerEntry entries::dense = entry_for<DenseKind>();

}  // namespace fast::nn
