#include "nn/inventory.hpp"

#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

std::string LayerNames::next(const LayerEntry& row) {
  return row.prefix == nullptr ? "" : fmt::format("{}{}", row.prefix, ++counts_[row.prefix]);
}

void TensorList::add(ParameterSpec tensor) {
  tensor.offset = offset_;
  tensor.count = static_cast<std::size_t>(elements_of(tensor.shape));
  offset_ += tensor.count;
  list_.push_back(std::move(tensor));
}

Inventory::Inventory(const ModelSpec& spec) {
  const std::vector<Shape> in = shapes(spec);
  for (; layer_ < spec.layers.size(); ++layer_) add(spec.layers[layer_], in[layer_]);
}

void Inventory::add(const std::vector<LayerSpec>& layers, const Shape& input) {
  const std::vector<Shape> in = shapes_through(layers, input, "residual");
  for (std::size_t i = 0; i < layers.size(); ++i) add(layers[i], in[i]);
}

void Inventory::add(const LayerSpec& spec, const Shape& input) {
  const LayerEntry& row = entry_of(spec);
  name_ = names_.next(row);
  if (row.list_tensors != nullptr) row.list_tensors(spec, input, *this);
}

ParameterSpec Inventory::tensor(const std::string& tensor, Shape shape) const {
  return {name_ + "." + tensor, std::move(shape), 0, 0, 0, 0, layer_};
}

void Inventory::add_weight(const std::string& tensor, Shape shape, std::int64_t fan_in) {
  ParameterSpec made = this->tensor(tensor, std::move(shape));
  made.fan_in = fan_in;
  parameters_.add(std::move(made));
}

void Inventory::add_constant(const std::string& tensor, Shape shape, double initial) {
  ParameterSpec made = this->tensor(tensor, std::move(shape));
  made.initial = initial;
  parameters_.add(std::move(made));
}

void Inventory::add_buffer(const std::string& tensor, Shape shape, double initial) {
  ParameterSpec made = this->tensor(tensor, std::move(shape));
  made.initial = initial;
  buffers_.add(std::move(made));
}

}  // namespace fast::nn
