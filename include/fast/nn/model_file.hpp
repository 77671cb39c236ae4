// Models in TOML files; docs/how-to/own-model.md describes the format.
#pragma once

#include <fast/nn/model_spec.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fast::nn {

/// What the data requires of a model.
struct ModelEnds {
  Shape sample;          ///< the input, unless the file gives one; empty: the file must give one
  std::int64_t outputs;  ///< units of a dense layer without the key "units"
};

/// Reads the model of a file. Throws Error(data) if the file cannot be read. Throws Error(argument)
/// with file, line and layer for unknown layers and keys, for values of a wrong type and for layers
/// that do not fit.
ModelSpec read_model(const std::string& path, const ModelEnds& ends);
/// Reads the model from the text of such a file.
ModelSpec parse_model(const std::string& text, const std::string& path, const ModelEnds& ends);

/// The names of all layers in model files, as "conv2d".
std::vector<std::string_view> layer_names();

/// A table for people: each layer with the shape of its output and the number of its parameters.
std::string describe(const ModelSpec& spec);

}  // namespace fast::nn
