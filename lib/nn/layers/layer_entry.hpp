// The registry of layers. Each kind of layer has a source in this folder, which ends with its row.
// The name of the row stands here and in registry.cpp.
#pragma once

#include <fast/nn/model_spec.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "nn/layer.hpp"

namespace fast::nn {

// The keys of a layer in a model file.

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

class Inventory;
class OnnxGraph;

/// All that the library knows of a kind of layer. The functions take specifications of this kind
/// only.
struct LayerEntry {
  std::size_t kind;              ///< index of the kind's type in LayerSpec
  const char* prefix = nullptr;  ///< of the names of its tensors: "conv" in "conv1.weight"
  bool takes_relu = false;       ///< make() can include a ReLU that follows the layer

  std::string (*describe)(const LayerSpec& spec) = nullptr;
  /// A layer of the keys in a model file.
  LayerSpec (*read)(Keys& keys) = nullptr;
  /// The shape of the output. Throws Error(argument) when the layer does not fit its input.
  Shape (*output)(const LayerSpec& spec, const Shape& input) = nullptr;
  /// Lists the parameters and buffers. Null for a layer without tensors.
  void (*list_tensors)(const LayerSpec& spec, const Shape& input, Inventory& to) = nullptr;
  std::unique_ptr<Layer<float>> (*make_float)(const LayerSpec& spec, const Shape& input,
                                              bool relu) = nullptr;
  std::unique_ptr<Layer<double>> (*make_double)(const LayerSpec& spec, const Shape& input,
                                                bool relu) = nullptr;
  /// Adds nodes and returns the name of the output. Null for a layer that ONNX lacks.
  std::string (*to_onnx)(const LayerSpec& spec, const std::string& input,
                         OnnxGraph& graph) = nullptr;
};

const LayerEntry& entry_of(const LayerSpec& spec);

/// Null: no layer has this name.
const LayerEntry* entry_named(std::string_view name);

template <class Spec, class... All>
constexpr std::size_t kind_in(const std::variant<All...>*) {
  std::size_t index = 0;
  static_cast<void>(((std::is_same_v<Spec, All> || (++index, false)) || ...));
  return index;
}
/// The index of a type of specification in LayerSpec.
template <class Spec>
constexpr std::size_t kind_of() {
  return kind_in<Spec>(static_cast<const LayerSpec*>(nullptr));
}

template <class T, class Kind>
std::unique_ptr<Layer<T>> make_of_kind(const LayerSpec& spec, const Shape& input, bool relu) {
  const auto& own = std::get<typename Kind::Spec>(spec);
  if constexpr (requires { Kind::takes_relu; })
    return Kind::template make<T>(own, input, relu);
  else
    return Kind::template make<T>(own, input);
}

/// The common part of the rows of layers that a specification and the shape of its input make.
template <class S, template <class> class OnCpu>
struct KindOf {
  using Spec = S;

  template <class T>
  static std::unique_ptr<Layer<T>> make(const Spec& spec, const Shape& in) {
    return std::make_unique<OnCpu<T>>(spec, in);
  }
};

/// Makes a row from a class whose static members are the functions above and take a `Kind::Spec`.
/// `describe`, `output` and the template `make<T>` are required. `prefix`, `takes_relu`, `keys`,
/// `list_tensors` and `to_onnx` are optional.
template <class Kind>
constexpr LayerEntry entry_for() {
  using Spec = typename Kind::Spec;
  LayerEntry row{kind_of<Spec>()};
  if constexpr (requires { Kind::prefix; }) row.prefix = Kind::prefix;
  if constexpr (requires { Kind::takes_relu; }) row.takes_relu = Kind::takes_relu;
  row.describe = [](const LayerSpec& spec) { return Kind::describe(std::get<Spec>(spec)); };
  row.read = [](Keys& keys) -> LayerSpec {
    Spec spec{};
    if constexpr (requires { &Kind::keys; }) Kind::keys(spec, keys);
    return spec;
  };
  row.output = [](const LayerSpec& spec, const Shape& input) {
    return Kind::output(std::get<Spec>(spec), input);
  };
  if constexpr (requires { &Kind::list_tensors; })
    row.list_tensors = [](const LayerSpec& spec, const Shape& input, Inventory& to) {
      Kind::list_tensors(std::get<Spec>(spec), input, to);
    };
  row.make_float = make_of_kind<float, Kind>;
  row.make_double = make_of_kind<double, Kind>;
  if constexpr (requires { &Kind::to_onnx; })
    row.to_onnx = [](const LayerSpec& spec, const std::string& input, OnnxGraph& graph) {
      return Kind::to_onnx(std::get<Spec>(spec), input, graph);
    };
  return row;
}

namespace entries {
extern const LayerEntry attention, average_pool, batch_norm, conv1d, conv2d, dense, dropout,
    embedding, flatten, gelu, global_average_pool, group_norm, gru, layer_norm, leaky_relu, lstm,
    max_pool, position, relu, residual, sigmoid, silu, softmax, tanh;
}  // namespace entries

}  // namespace fast::nn
