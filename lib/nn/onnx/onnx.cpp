#include <fast/nn/onnx.hpp>

#include "nn/onnx/graph.hpp"

namespace fast::nn {
namespace {

/// The type of an input or output of the model, for batches of any size.
onnx::Message described(std::string_view name, const Shape& shape, DType dtype) {
  onnx::Message sides;
  sides.part(1, onnx::Message().text(2, "batch"));
  for (const std::int64_t side : shape) sides.part(1, onnx::Message().number(1, side));
  const onnx::Message tensor = onnx::Message().number(1, onnx::element_type(dtype)).part(2, sides);
  return onnx::Message().text(1, name).part(2, onnx::Message().part(1, tensor));
}

}  // namespace

std::string to_onnx(const ModelSpec& spec, const std::vector<TensorView>& tensors) {
  OnnxGraph graph(spec, tensors);
  const std::string last = graph.add(spec.layers, "input");
  graph.node("Identity", {last}, {}, "logits");
  graph.message()
      .text(2, spec.name)
      .part(11, described("input", spec.input, graph.dtype()))
      .part(12, described("logits", shapes(spec).back(), graph.dtype()));
  return onnx::Message()
      .number(1, onnx::ir_version)
      .text(2, "fast")
      .part(7, graph.message())
      .part(8, onnx::Message().text(1, "").number(2, onnx::operator_set))
      .bytes();
}

}  // namespace fast::nn
