// The parameters and buffers of a model, and their places.
#pragma once

#include <fast/nn/model_spec.hpp>
#include <map>

namespace fast::nn {

struct LayerEntry;

/// Names of layers: "conv1", "conv2", "fc1". Each prefix is counted from 1.
class LayerNames {
 public:
  /// Empty for a layer without a prefix.
  std::string next(const LayerEntry& row);

 private:
  std::map<std::string, int> counts_;
};

/// The tensors of a list with running offsets.
class TensorList {
 public:
  void add(ParameterSpec tensor);
  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  std::vector<ParameterSpec> list_;
  std::size_t offset_ = 0;
};

/// Collects the tensors of all layers of a model, in order.
class Inventory {
 public:
  /// Throws as nn::shapes() does.
  explicit Inventory(const ModelSpec& spec);

  /// For layers that contain layers.
  void add(const std::vector<LayerSpec>& layers, const Shape& input);

  /// Adds the parameter "NAME.tensor" of the current layer. `fan_in`, the number of inputs of a
  /// sum, sets the variance of its random initial values.
  void add_weight(const std::string& tensor, Shape shape, std::int64_t fan_in);
  /// Adds a parameter whose initial values are all `initial`.
  void add_constant(const std::string& tensor, Shape shape, double initial);
  void add_buffer(const std::string& tensor, Shape shape, double initial);

  std::vector<ParameterSpec> take_parameters() { return parameters_.take(); }
  std::vector<ParameterSpec> take_buffers() { return buffers_.take(); }

 private:
  void add(const LayerSpec& spec, const Shape& input);
  ParameterSpec tensor(const std::string& tensor, Shape shape) const;

  TensorList parameters_, buffers_;
  LayerNames names_;
  std::string name_;       // of the current layer
  std::size_t layer_ = 0;  // of the model
};

}  // namespace fast::nn
