// The nodes and tensors of a model in an ONNX file.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/nn/model_spec.hpp>
#include <optional>

#include "nn/inventory.hpp"
#include "nn/onnx/message.hpp"

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
