// The keys of a layer in a model file.
#pragma once

#include <fast/nn/model_spec.hpp>

namespace fast::nn {

/// A row calls it for each key of its layer, in the order of the documentation. A reader of model
/// files sets the values; keys that may be left out keep theirs.
class Keys {
 public:
  virtual ~Keys() = default;
  virtual void required(const char* key, std::int64_t& value) = 0;
  virtual void optional(const char* key, std::int64_t& value) = 0;
  virtual void optional(const char* key, double& value) = 0;
  virtual void optional(const char* key, bool& value) = 0;
  /// Without the key, as many as the data has outputs.
  virtual void outputs(const char* key, std::int64_t& value) = 0;
  /// A list of layers that begins at the input of this layer.
  virtual void layers(const char* key, std::vector<LayerSpec>& value) = 0;
};

}  // namespace fast::nn
