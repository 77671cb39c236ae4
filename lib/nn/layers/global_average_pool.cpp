#include "nn/layers/layer_entry.hpp"
#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

template <class T>
class AveragePoolLayer final : public Layer<T> {
 public:
  explicit AveragePoolLayer(const Shape& in) : channels_(in[0]), area_(in[1] * in[2]) {}
  void forward(const T*, const T* x, T* y, const Pass<T>& pass) override {
    average_pool_forward({channels_, area_, pass.count}, x, y);
  }
  void backward(const T*, T*, const T*, const T*, const T* dy, T* dx, Index count) override {
    if (dx != nullptr) average_pool_backward({channels_, area_, count}, dy, dx);
  }

 private:
  Index channels_, area_;
};

struct AveragePoolKind {
  using Spec = GlobalAveragePool;

  static std::string describe(const GlobalAveragePool&) { return "global average pool"; }
  static Shape output(const GlobalAveragePool&, const Shape& in) {
    demand_image(in);
    return {in[0]};
  }
  template <class T>
  static std::unique_ptr<Layer<T>> make(const GlobalAveragePool&, const Shape& in) {
    return std::make_unique<AveragePoolLayer<T>>(in);
  }
  static std::string to_onnx(const GlobalAveragePool&, const std::string& in, OnnxGraph& graph) {
    return graph.flattened(graph.node("GlobalAveragePool", {in}));
  }
};

}  // namespace

const LayerEntry entries::global_average_pool = entry_for<AveragePoolKind>();

}  // namespace fast::nn
