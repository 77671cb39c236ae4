#include <fast/nn/model_spec.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <initializer_list>
#include <utility>

#include "core/registry.hpp"
#include "core/text.hpp"
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

namespace {

/// Smoothing and weights of classes.
void check_classes(const ModelSpec& spec, std::int64_t classes) {
  const LossSpec& loss = spec.loss;
  if (loss.is_plain()) return;
  demand(
      loss.kind == Loss::cross_entropy,
      "ModelSpec {}: label smoothing and weights of classes belong to cross_entropy, its loss is "
      "{}",
      spec.name, name(loss.kind));
  demand(loss.smoothing >= 0 && loss.smoothing < 1,
         "ModelSpec {}: label smoothing {}; a number from 0 to less than 1 is required", spec.name,
         loss.smoothing);
  const std::vector<double>& weights = loss.class_weights;
  demand(weights.empty() || std::cmp_equal(weights.size(), classes),
         "ModelSpec {}: {} weights of {} classes; give one a class", spec.name, weights.size(),
         classes);
  const bool good =
      std::ranges::all_of(weights, [](double w) { return std::isfinite(w) && w >= 0; });
  demand(good && (weights.empty() || std::ranges::max(weights) > 0),
         "ModelSpec {}: weights of classes must be finite, not negative, and one of them positive",
         spec.name);
}

}  // namespace

std::vector<Shape> shapes(const ModelSpec& spec) {
  demand(!spec.input.empty() && spec.input.size() <= 3 &&
             std::ranges::all_of(spec.input, [](auto n) { return n > 0; }),
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
  check_classes(spec, all.back().back());
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

ModelSpec lenet5(std::int64_t classes, const Shape& image) {
  return {"lenet5",
          image,
          {Conv2d{6, 5, 1, 2}, Relu{}, MaxPool{}, Conv2d{16, 5}, Relu{}, MaxPool{}, Flatten{},
           Dense{120}, Relu{}, Dense{84}, Relu{}, Dense{classes}}};
}

ModelSpec mlp(const std::vector<std::int64_t>& widths) {
  require(widths.size() >= 2, ErrorKind::argument,
          "mlp: {} widths given, two at least are required: inputs, hidden layers, classes",
          widths.size());
  ModelSpec spec{fmt::format("mlp {}", fmt::join(widths, "-")), {widths.front()}, {}};
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) spec.layers.emplace_back(Relu{});
    spec.layers.emplace_back(Dense{widths[i]});
  }
  return spec;
}

ModelSpec lstm(std::int64_t hidden, std::int64_t classes, const Shape& sequence, bool every_step) {
  return {fmt::format("lstm {}", hidden), sequence, {Lstm{hidden, every_step}, Dense{classes}}};
}

namespace {

Conv2d conv(std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
  return {channels, kernel, stride, kernel / 2, false};
}

/// A block of a residual network. Without `shortcut` channels, its input is added as it is.
void add_block(ModelSpec& spec, std::vector<LayerSpec> body, std::int64_t shortcut,
               std::int64_t stride) {
  Residual residual{std::move(body), {}};
  if (shortcut > 0) residual.shortcut = {conv(shortcut, 1, stride), BatchNorm{}};
  spec.layers.emplace_back(std::move(residual));
  spec.layers.emplace_back(Relu{});
}

ModelSpec classifying(ModelSpec spec, std::int64_t classes) {
  spec.layers.emplace_back(GlobalAveragePool{});
  spec.layers.emplace_back(Dense{classes});
  return spec;
}

}  // namespace

ModelSpec resnet20(std::int64_t classes, const Shape& image) {
  ModelSpec spec{"resnet20", image, {conv(16, 3, 1), BatchNorm{}, Relu{}}};
  for (const std::int64_t channels : {16, 32, 64})
    for (int block = 0; block < 3; ++block) {
      const bool first = block == 0 && channels > 16;
      const std::int64_t stride = first ? 2 : 1;
      add_block(spec,
                {conv(channels, 3, stride), BatchNorm{}, Relu{}, conv(channels, 3, 1), BatchNorm{}},
                first ? channels : 0, stride);
    }
  return classifying(std::move(spec), classes);
}

ModelSpec resnet50(std::int64_t classes, const Shape& image) {
  ModelSpec spec{"resnet50", image, {conv(64, 7, 2), BatchNorm{}, Relu{}, MaxPool{3, 2, 1}}};
  for (const auto& [width, blocks] :
       std::initializer_list<std::pair<std::int64_t, int>>{{64, 3}, {128, 4}, {256, 6}, {512, 3}})
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && width > 64 ? 2 : 1;
      add_block(spec,
                {conv(width, 1, 1), BatchNorm{}, Relu{}, conv(width, 3, stride), BatchNorm{},
                 Relu{}, conv(4 * width, 1, 1), BatchNorm{}},
                block == 0 ? 4 * width : 0, stride);
    }
  return classifying(std::move(spec), classes);
}

namespace {

/// "mlp:A-B-...": the widths of all layers.
std::vector<std::int64_t> widths_of(const std::string& name, std::int64_t inputs,
                                    std::int64_t outputs) {
  std::vector<std::int64_t> widths{inputs};
  for (const std::string_view text : split_text(std::string_view(name).substr(4), '-')) {
    std::int64_t width = 0;
    require(reads(text, width) && width > 0, ErrorKind::argument,
            "--model: \"{}\"; widths of hidden layers are required (mlp:512-256)", name);
    widths.push_back(width);
  }
  widths.push_back(outputs);
  return widths;
}

std::int64_t hidden_of(const std::string& name) {
  if (name == "lstm") return 64;
  std::int64_t hidden = 0;
  require(reads(std::string_view(name).substr(5), hidden) && hidden > 0, ErrorKind::argument,
          "--model: \"{}\"; a number of hidden units is required (lstm:128)", name);
  return hidden;
}

/// Samples that are no images, and those of other channels, get the usual shape.
Shape image_of(const Shape& sample, const Shape& usual, bool any_channels, std::int64_t smallest) {
  Shape image = sample;
  if (image.size() == 2) image.insert(image.begin(), 1);
  const bool fits = image.size() == 3 && (any_channels || image[0] == usual[0]) &&
                    image[1] >= smallest && image[2] >= smallest;
  return fits ? image : usual;
}

/// An image of one channel is a sequence of its rows.
Shape sequence_of(const Shape& sample) {
  if (sample.size() == 2) return sample;
  if (sample.size() == 3 && sample[0] == 1) return {sample[1], sample[2]};
  return {28, 28};
}

std::int64_t inputs_of(const Shape& sample) { return sample.empty() ? 784 : elements_of(sample); }

}  // namespace

ModelSpec model_by_name(const std::string& name, std::int64_t outputs, const Shape& sample,
                        bool per_step) {
  if (name == "lenet") return lenet5(outputs, image_of(sample, {1, 28, 28}, true, 12));
  if (name == "mlp") return mlp({inputs_of(sample), 256, outputs});
  if (name == "resnet20") return resnet20(outputs, image_of(sample, {3, 32, 32}, true, 1));
  if (name == "resnet50") return resnet50(outputs, image_of(sample, {3, 224, 224}, false, 32));
  if (name == "lstm" || name.starts_with("lstm:"))
    return lstm(hidden_of(name), outputs, sequence_of(sample), per_step);
  if (name.starts_with("mlp:")) return mlp(widths_of(name, inputs_of(sample), outputs));
  fail(ErrorKind::argument,
       "--model: \"{}\" is unknown; choose lenet, mlp, mlp:A-B-..., lstm, lstm:HIDDEN, "
       "resnet20 or resnet50, or give a file of layers (FILE.toml){}",
       name, did_you_mean(name, {"lenet", "mlp", "lstm", "resnet20", "resnet50"}));
}

}  // namespace fast::nn
