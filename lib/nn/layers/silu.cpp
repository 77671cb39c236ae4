#include "nn/layers/silu.hpp"

#include "nn/layers/elementwise.hpp"
#include "nn/onnx/graph.hpp"

namespace fast::nn {
namespace {

struct SiluKind : ElementwiseKind<Silu> {
  static std::string describe(const Silu&) { return "silu"; }
  static std::string to_onnx(const Silu&, const std::string& in, OnnxGraph& graph) {
    return graph.node("Mul", {in, graph.node("Sigmoid", {in})});
  }
};

}  // namespace

const LayerEntry entries::silu = entry_for<SiluKind>();

}  // namespace fast::nn
