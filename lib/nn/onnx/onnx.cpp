#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <fast/nn/onnx.hpp>

#include "nn/onnx/graph.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// The type of an input or output of the model, for batches of any size.
onnx::Message described(std::string_view name, const Shape& shape, DType dtype) {
  onnx::Message sides;
  sides.part(1, onnx::Message().text(2, "batch"));
  for (const std::int64_t side : shape) sides.part(1, onnx::Message().number(1, side));
  const onnx::Message tensor = onnx::Message().number(1, onnx::element_type(dtype)).part(2, sides);
  return onnx::Message().text(1, name).part(2, onnx::Message().part(1, tensor));
}

/// One value, or one a channel, for a node that broadcasts. Values are rounded as in training.
template <class T>
std::string channels(OnnxGraph& graph, const std::string& name, const std::vector<T>& values,
                     DType dtype) {
  Shape shape{static_cast<std::int64_t>(values.size())};
  if (values.size() > 1) shape.resize(graph.input_shape().size(), 1);
  std::string bytes;
  for (const T value : values) {
    if (dtype == DType::f64)
      bytes += bytes_of(static_cast<double>(value));
    else
      bytes += bytes_of(value);
  }
  return graph.store_named("normalization." + name, shape, onnx::element_type(dtype), bytes);
}

/// Takes off the origins in 64 bits, and goes on in the model's type.
std::string less_origins(OnnxGraph& graph, const std::vector<double>& origins, std::string input) {
  if (origins.empty()) return input;
  input = graph.node("Sub", {input, channels(graph, "origins", origins, DType::f64)});
  const auto type = static_cast<std::int64_t>(onnx::element_type(graph.dtype()));
  return graph.node("Cast", {input}, {onnx::attribute("to", type)});
}

/// value × scale + offset, as batches of training are made.
std::string normalized(OnnxGraph& graph, const OnnxNotes& notes, std::string input) {
  const std::size_t sides = std::max(notes.mean.size(), notes.stddev.size());
  std::vector<float> scale(sides), offset(sides);
  bool changes = false;
  input = less_origins(graph, notes.origins, std::move(input));
  for (std::size_t c = 0; c < sides; ++c) {
    const float mean = notes.mean[notes.mean.size() == 1 ? 0 : c];
    const float stddev = notes.stddev[notes.stddev.size() == 1 ? 0 : c];
    scale[c] = 1 / stddev;
    offset[c] = -mean / stddev;
    changes = changes || scale[c] != 1 || offset[c] != 0;
  }
  if (!changes) return input;
  input = graph.node("Mul", {input, channels(graph, "scale", scale, graph.dtype())});
  return graph.node("Add", {input, channels(graph, "offset", offset, graph.dtype())});
}

/// Outputs in the units of the data.
std::string unscaled(OnnxGraph& graph, const OnnxNotes& notes, const Shape& output,
                     std::string last) {
  if (notes.target_mean.empty()) return last;
  const auto stored = [&](const std::string& name, const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values)
      bytes += graph.dtype() == DType::f64 ? bytes_of(double{value}) : bytes_of(value);
    return graph.store_named("targets." + name, output, onnx::element_type(graph.dtype()), bytes);
  };
  last = graph.node("Mul", {last, stored("stddev", notes.target_stddev)});
  return graph.node("Add", {last, stored("mean", notes.target_mean)});
}

void check(const OnnxNotes& notes, const Shape& input, const Shape& output) {
  const std::size_t count = input.empty() ? 1 : static_cast<std::size_t>(input.front());
  const auto fits = [&](std::size_t entries) { return entries == 1 || entries == count; };
  require(notes.mean.empty() == notes.stddev.empty() &&
              (notes.mean.empty() || (fits(notes.mean.size()) && fits(notes.stddev.size()))),
          ErrorKind::argument,
          "to_onnx: {} means and {} standard deviations for an input of {}; give one, or one a "
          "channel",
          notes.mean.size(), notes.stddev.size(), nn::describe(input));
  require(notes.origins.empty() || notes.origins.size() == count, ErrorKind::argument,
          "to_onnx: {} origins for an input of {}; give one a channel", notes.origins.size(),
          nn::describe(input));
  const auto outputs = static_cast<std::size_t>(elements_of(output));
  require(notes.target_mean.size() == notes.target_stddev.size() &&
              (notes.target_mean.empty() || notes.target_mean.size() == outputs),
          ErrorKind::argument,
          "to_onnx: {} means and {} standard deviations of targets for {} outputs; give one an "
          "output, or none",
          notes.target_mean.size(), notes.target_stddev.size(), outputs);
}

}  // namespace

std::string to_onnx(const ModelSpec& spec, const std::vector<TensorView>& tensors,
                    const OnnxNotes& notes) {
  const Shape output = shapes(spec).back();
  check(notes, spec.input, output);
  OnnxGraph graph(spec, tensors);
  std::string last = graph.add(spec.layers, normalized(graph, notes, "input"));
  last = unscaled(graph, notes, output, std::move(last));
  graph.node("Identity", {last}, {}, "logits");
  graph.message()
      .text(2, spec.name)
      .part(11, described("input", spec.input, notes.origins.empty() ? graph.dtype() : DType::f64))
      .part(12, described("logits", output, graph.dtype()));
  onnx::Message model;
  model.number(1, onnx::ir_version)
      .text(2, "fast")
      .text(3, version())
      .part(7, graph.message())
      .part(8, onnx::Message().text(1, "").number(2, onnx::operator_set));
  for (const auto& [key, value] : notes.metadata)
    model.part(14, onnx::Message().text(1, key).text(2, value));
  return model.bytes();
}

namespace {

bool has(const std::vector<TensorView>& tensors, const ModelSpec& spec) {
  std::vector<ParameterSpec> all = parameters(spec);
  for (ParameterSpec& buffer : buffers(spec)) all.push_back(std::move(buffer));
  return all.size() == tensors.size() && std::ranges::all_of(all, [&](const ParameterSpec& own) {
           return std::ranges::any_of(tensors, [&](const TensorView& view) {
             return view.name == own.name && view.shape == own.shape;
           });
         });
}

}  // namespace

ModelSpec recognize(const std::vector<TensorView>& tensors) {
  std::vector<std::int64_t> widths;
  for (int layer = 1;; ++layer) {
    const std::string name = fmt::format("fc{}.weight", layer);
    const auto found = std::ranges::find(tensors, name, &TensorView::name);
    if (found == tensors.end() || found->shape.size() != 2) break;
    if (widths.empty()) widths.push_back(found->shape[1]);
    widths.push_back(found->shape[0]);
  }
  if (widths.size() >= 2 && *std::ranges::min_element(widths) > 0) {
    for (const ModelSpec& spec : {lenet5(widths.back()), resnet20(widths.back()), mlp(widths),
                                  lstm(widths.front(), widths.back())}) {
      if (has(tensors, spec)) return spec;
    }
  }
  fail(ErrorKind::argument,
       "these {} tensors are those of no model known here (lenet5, resnet20, mlp, lstm); describe "
       "the "
       "model by a ModelSpec",
       tensors.size());
}

}  // namespace fast::nn
