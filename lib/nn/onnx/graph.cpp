#include "nn/onnx/graph.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

#include "nn/layers/layer_entry.hpp"

namespace fast::nn {

OnnxGraph::OnnxGraph(const ModelSpec& spec, const std::vector<TensorView>& tensors)
    : tensors_(tensors), shape_(spec.input) {
  for (const auto& list : {parameters(spec), buffers(spec)}) {
    for (const ParameterSpec& each : list) check(each);
  }
}

void OnnxGraph::check(const ParameterSpec& spec) {
  const auto found = find(spec.name);
  require(found != tensors_.end() && found->shape == spec.shape, ErrorKind::argument,
          "to_onnx: the model has {} \"{}\", the tensors given have {}; give those of this model",
          nn::describe(spec.shape), spec.name,
          found == tensors_.end() ? "none of that name" : fast::describe(*found));
  dtype_ = dtype_.value_or(found->dtype);
  require(found->dtype == *dtype_ && (*dtype_ == DType::f32 || *dtype_ == DType::f64),
          ErrorKind::argument, "to_onnx: {}; tensors of one type are required, f32 or f64",
          fast::describe(*found));
}

std::vector<TensorView>::const_iterator OnnxGraph::find(const std::string& name) const {
  return std::ranges::find(tensors_, name, &TensorView::name);
}

std::string OnnxGraph::add(const std::vector<LayerSpec>& layers, std::string input) {
  const Shape kept = shape_;
  for (const LayerSpec& layer : layers) {
    Shape output = entry_of(layer).output(layer, shape_);
    input = add(layer, input);
    shape_ = std::move(output);
  }
  shape_ = kept;
  return input;
}

std::string OnnxGraph::add(const LayerSpec& layer, const std::string& input) {
  const LayerEntry& row = entry_of(layer);
  require(row.to_onnx != nullptr, ErrorKind::argument,
          "to_onnx: layer \"{}\" has no form in operator set {}; export a model without it",
          nn::describe(layer), onnx::operator_set);
  name_ = names_.next(row);
  return row.to_onnx(layer, input, *this);
}

std::string OnnxGraph::node(std::string_view kind, const std::vector<std::string>& inputs,
                            const std::vector<onnx::Message>& attributes, std::string output,
                            int skipped) {
  if (output.empty()) output = fmt::format("value{}", ++values_);
  onnx::Message node;
  for (const std::string& input : inputs) node.text(1, input);
  for (int i = 0; i < skipped; ++i) node.text(2, "");
  node.text(2, output).text(4, kind);
  for (const onnx::Message& each : attributes) node.part(5, each);
  graph_.part(1, node);
  return output;
}

std::string OnnxGraph::flattened(const std::string& input) {
  return node("Flatten", {input}, {onnx::attribute("axis", std::int64_t{1})});
}

const TensorView& OnnxGraph::view(const std::string& tensor) const {
  return *find(name_ + "." + tensor);
}

std::string OnnxGraph::tensor(const std::string& tensor) {
  const TensorView& found = view(tensor);
  return store(tensor, found.shape, onnx::element_type(found.dtype),
               {static_cast<const char*>(found.data), found.size_bytes()});
}

std::string OnnxGraph::store(const std::string& tensor, const Shape& shape, int type,
                             std::string_view bytes) {
  return store_named(name_ + "." + tensor, shape, type, bytes);
}

std::string OnnxGraph::constant(const std::vector<double>& values, const Shape& shape) {
  std::string bytes;
  for (const double value : values) {
    const auto narrow = static_cast<float>(value);
    if (dtype() == DType::f64)
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    else
      bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  return store_named(fmt::format("constant{}", ++values_), shape, onnx::element_type(dtype()),
                     bytes);
}

std::string OnnxGraph::integers(const std::vector<std::int64_t>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 8 * values.size());
  return store_named(fmt::format("constant{}", ++values_),
                     {static_cast<std::int64_t>(values.size())}, onnx::int64_type, bytes);
}

std::string OnnxGraph::store_named(const std::string& name, const Shape& shape, int type,
                                   std::string_view bytes) {
  onnx::Message stored;
  for (const std::int64_t side : shape) stored.number(1, side);
  graph_.part(5, stored.number(2, type).text(8, name).text(9, bytes));
  return name;
}

}  // namespace fast::nn
