// The nodes and tensors of a model in an ONNX file.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/nn/model_spec.hpp>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/inventory.hpp"

namespace fast::nn::onnx {

// The parts of an ONNX file: messages of protocol buffers.

inline constexpr int operator_set = 17, ir_version = 8;

/// A message; onnx.proto gives the numbers of the fields.
class Message {
 public:
  Message& number(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& part(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

inline Message attribute(std::string_view name, std::int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message attribute(std::string_view name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
inline Message attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  Message message = Message().text(1, name);
  for (const std::int64_t value : values) message.number(8, value);
  return message.number(20, 7);
}

inline constexpr int int64_type = 7;
inline int element_type(DType dtype) { return dtype == DType::f64 ? 11 : 1; }

/// Attributes of operators whose window has equal sides, two or one.
inline std::vector<Message> window(std::int64_t size, std::int64_t stride, std::int64_t padding,
                                   std::size_t sides = 2) {
  using All = std::vector<std::int64_t>;
  return {attribute("kernel_shape", All(sides, size)), attribute("strides", All(sides, stride)),
          attribute("pads", All(2 * sides, padding))};
}

}  // namespace fast::nn::onnx

namespace fast::nn {

/// Builds the graph from the nodes of each layer. Tensors have the names of nn::parameters() and
/// nn::buffers().
class OnnxGraph {
 public:
  /// Throws Error(argument) when a tensor of the model is missing or does not fit.
  OnnxGraph(const ModelSpec& spec, const std::vector<TensorView>& tensors);

  /// Adds layers after `input`. Returns the name of their output.
  std::string add(const std::vector<LayerSpec>& layers, std::string input);
  /// The shape of the input of the current layer.
  const Shape& input_shape() const { return shape_; }

  /// Adds a node and returns the name of its output. `skipped` unused outputs precede it.
  std::string node(std::string_view kind, const std::vector<std::string>& inputs,
                   const std::vector<onnx::Message>& attributes = {}, std::string output = "",
                   int skipped = 0);
  std::string flattened(const std::string& input);

  /// The tensor "NAME.tensor" of the current layer.
  const TensorView& view(const std::string& tensor) const;
  /// Stores that tensor unchanged. Returns its name in the graph.
  std::string tensor(const std::string& tensor);
  /// Stores other bytes under the name "NAME.tensor".
  std::string store(const std::string& tensor, const Shape& shape, int type,
                    std::string_view bytes);
  /// The same under that name.
  std::string store_named(const std::string& name, const Shape& shape, int type,
                          std::string_view bytes);

  /// Stores numbers in the model's type. Without a shape they must be one.
  std::string constant(const std::vector<double>& values, const Shape& shape = {});
  std::string integers(const std::vector<std::int64_t>& values);

  DType dtype() const { return dtype_.value_or(DType::f32); }
  onnx::Message& message() { return graph_; }

 private:
  void check(const ParameterSpec& spec);
  std::vector<TensorView>::const_iterator find(const std::string& name) const;
  std::string add(const LayerSpec& layer, const std::string& input);

  const std::vector<TensorView>& tensors_;
  std::optional<DType> dtype_;
  onnx::Message graph_;
  LayerNames names_;
  std::string name_;  // of the current layer
  Shape shape_;       // of its input
  int values_ = 0;
};

}  // namespace fast::nn
