#include <fmt/ranges.h>

#include <algorithm>

#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

std::string describe(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, "x")); }

std::string describe(const LayerSpec& layer) { return entry_of(layer).describe(layer); }

std::vector<Shape> shapes_through(const std::vector<LayerSpec>& layers, const Shape& input,
                                  const std::string& where) {
  std::vector<Shape> all{input};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    try {
      all.push_back(entry_of(layers[i]).output(layers[i], all[i]));
    } catch (const Error& error) {
      fail(error.kind(), "{}: layer {} ({}): {}", where, i + 1, describe(layers[i]), error.what());
    }
  }
  return all;
}

std::vector<Shape> shapes(const ModelSpec& spec) {
  demand(!spec.input.empty() && spec.input.size() <= 3 &&
             std::all_of(spec.input.begin(), spec.input.end(), [](auto n) { return n > 0; }),
         "ModelSpec {}: input {} is neither [features] nor [steps x features] nor [channels x "
         "height x width], all positive",
         spec.name, describe(spec.input));
  std::vector<Shape> all = shapes_through(spec.layers, spec.input, "ModelSpec " + spec.name);
  demand(
      all.back().size() <= 2,
      "ModelSpec {}: its outputs {} are images, no vector or sequence; end it with a flatten and a "
      "dense layer",
      spec.name, describe(all.back()));
  demand(spec.loss.delta > 0, "ModelSpec {}: delta {} of its loss is not positive", spec.name,
         spec.loss.delta);
  return all;
}

std::vector<Shape> shapes_through(const std::vector<LayerSpec>& layers, const Shape& input) {
  return shapes_through(layers, input, std::string("layers"));
}

bool takes(const ModelSpec& spec, const Shape& sample) {
  if (spec.input.size() < 3) return elements_of(sample) == elements_of(spec.input);
  Shape image = sample;
  if (image.size() == 2) image.insert(image.begin(), 1);
  return image == spec.input;
}

bool classifies(const ModelSpec& spec) {
  return spec.loss.kind == Loss::cross_entropy && shapes(spec).back().size() == 1;
}

bool has_measures(const ModelSpec& spec) {
  return !classifies(spec) || shapes(spec).back()[0] > few_classes;
}

std::vector<ParameterSpec> parameters(const ModelSpec& spec) {
  return Inventory(spec).take_parameters();
}

std::vector<ParameterSpec> buffers(const ModelSpec& spec) { return Inventory(spec).take_buffers(); }

std::size_t parameter_count(const ModelSpec& spec) {
  const std::vector<ParameterSpec> list = parameters(spec);
  return list.empty() ? 0 : list.back().offset + list.back().count;
}

}  // namespace fast::nn
