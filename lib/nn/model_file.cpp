#include <fast/nn/model_spec.hpp>

#include <algorithm>
#include <filesystem>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/toml.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {
namespace {

/// A location in a file, for messages.
struct SourceLocation {
  std::string path;
  unsigned line = 0;
  std::string layer = {};  ///< "layer 3 (conv2d)"

  SourceLocation at(const toml::node& node) const {
    SourceLocation location = *this;
    location.line = static_cast<unsigned>(node.source().begin.line);
    return location;
  }
  std::string text() const {
    return fmt::format("{}:{}: {}{}", printable(path), line, layer, layer.empty() ? "" : ": ");
  }
};

template <class... Args>
void need(bool condition, const SourceLocation& location, fmt::format_string<Args...> format,
          Args&&... args) {
  if (condition) return;
  fail(ErrorKind::argument, "{}{}", location.text(),
       fmt::format(format, std::forward<Args>(args)...));
}

/// Types of layers whose input is a sequence.
bool takes_steps(std::string_view type) {
  return type == "conv1d" || type == "lstm" || type == "gru" || type == "position" ||
         type == "attention";
}

/// What to do for a layer whose input is no sequence; else empty.
std::string sequence_advice(std::string_view type, const Shape& input, bool is_first) {
  if (!takes_steps(type)) return {};
  if (input.size() == 3) return "; no layer makes a sequence of images";
  return is_first && input.size() == 1
             ? fmt::format("; give samples steps, as input = [{}, 1]", input[0])
             : std::string();
}

/// Reads layers and follows the shape of what goes through them.
class LayerReader {
 public:
  LayerReader(SourceLocation location, const ModelEnds& ends)
      : location_(std::move(location)), ends_(ends) {}

  /// `prefix` comes before the number of each layer: "body: ".
  std::vector<LayerSpec> list(const toml::node& node, Shape shape, const std::string& prefix) const;

 private:
  LayerSpec layer(const toml::table& table, const SourceLocation& location,
                  const Shape& shape) const;

  SourceLocation location_;
  const ModelEnds& ends_;
};

/// The keys of one layer's table.
class TableKeys final : public Keys {
 public:
  TableKeys(const toml::table& table, SourceLocation location, const Shape& shape,
            const ModelEnds& ends, const LayerReader& reader)
      : table_(table),
        location_(std::move(location)),
        shape_(shape),
        ends_(ends),
        reader_(reader) {}

  void required(const char* key, std::int64_t& value) override {
    need(table_.contains(key), location_, "\"{}\" is missing; a whole number is required{}", key,
         misspelled(key));
    optional(key, value);
  }
  void optional(const char* key, std::int64_t& value) override {
    if (const toml::node* node = take(key)) {
      const auto* number = node->as_integer();
      need(number != nullptr, location_.at(*node), "{}: a {} was found; a whole number is required",
           key, toml_type(*node));
      value = number->get();
    }
  }
  void optional(const char* key, double& value) override {
    if (const toml::node* node = take(key)) {
      need(node->is_number(), location_.at(*node), "{}: a {} was found; a number is required", key,
           toml_type(*node));
      value = *node->value<double>();
    }
  }
  void optional(const char* key, bool& value) override {
    if (const toml::node* node = take(key)) {
      need(node->is_boolean(), location_.at(*node), "{}: a {} was found; true or false is required",
           key, toml_type(*node));
      value = node->as_boolean()->get();
    }
  }
  void outputs(const char* key, std::int64_t& value) override {
    value = ends_.outputs;
    optional(key, value);
  }
  void layers(const char* key, std::vector<LayerSpec>& value) override {
    if (const toml::node* node = take(key))
      value = reader_.list(*node, shape_, fmt::format("{}: {}: ", location_.layer, key));
  }

  /// Refuses keys that the layer has not asked for.
  void finish() const {
    for (const auto& [key, node] : table_) {
      const bool known = contains(known_, key.str());
      need(known, location_.at(node), "there is no key \"{}\"{}", printable(key.str()),
           known_.size() == 1 ? "; this layer has none"
                              : did_you_mean(key.str(), known_) + choices());
    }
  }

 private:
  const toml::node* take(const char* key) {
    known_.emplace_back(key);
    return table_.get(key);
  }
  /// A key of the table that `missing` may be.
  std::string misspelled(const char* missing) const {
    std::vector<std::string_view> found;
    for (const auto& [key, node] : table_) {
      if (!contains(known_, key.str())) found.push_back(key.str());
    }
    const auto close = closest(missing, found);
    return close ? fmt::format("; the key \"{}\" is there", printable(*close)) : std::string();
  }
  std::string choices() const {
    std::string text = "; its keys are";
    for (std::size_t i = 1; i < known_.size(); ++i)
      text += fmt::format("{} {}", i == 1 ? "" : i + 1 == known_.size() ? " and" : ",", known_[i]);
    return text;
  }

  const toml::table& table_;
  SourceLocation location_;
  const Shape& shape_;
  const ModelEnds& ends_;
  const LayerReader& reader_;
  std::vector<std::string_view> known_{"type"};
};

LayerSpec LayerReader::layer(const toml::table& table, const SourceLocation& location,
                             const Shape& shape) const {
  const toml::node* type = table.get("type");
  need(type != nullptr && type->is_string(), location,
       "\"type\" is missing; the name of a layer is required (type = \"dense\")");
  const std::string& name = type->as_string()->get();
  const LayerEntry* row = entry_named(name);
  need(row != nullptr, location.at(*type),
       "there is no layer \"{}\"{}; docs/reference/layers.md has all", printable(name),
       did_you_mean(name, layer_names()));
  SourceLocation named = location;
  named.layer += fmt::format(" ({})", name);
  TableKeys keys(table, named, shape, ends_, *this);
  LayerSpec spec = row->read(keys);
  keys.finish();
  return spec;
}

std::vector<LayerSpec> LayerReader::list(const toml::node& node, Shape shape,
                                         const std::string& prefix) const {
  const toml::array* array = node.as_array();
  need(array != nullptr, location_.at(node), "{}a {} was found; a list of layers is required",
       prefix, toml_type(node));
  std::vector<LayerSpec> layers;
  for (const toml::node& entry : *array) {
    SourceLocation location = location_.at(entry);
    location.layer = fmt::format("{}layer {}", prefix, layers.size() + 1);
    need(entry.is_table(), location, "a {} was found; a layer is a table with the key \"type\"",
         toml_type(entry));
    layers.push_back(layer(*entry.as_table(), location, shape));
    try {
      shape = entry_of(layers.back()).output(layers.back(), shape);
    } catch (const Error& error) {
      location.layer += fmt::format(" ({})", describe(layers.back()));
      const bool is_first = prefix.empty() && layers.size() == 1;
      need(false, location, "{}{}", error.what(),
           sequence_advice(entry.as_table()->get("type")->as_string()->get(), shape, is_first));
    }
  }
  return layers;
}

Shape input_of(const toml::table& file, const SourceLocation& location, const Shape& sample) {
  const toml::node* node = file.get("input");
  need(node != nullptr || !sample.empty(), location,
       "\"input\" is missing; the shape of a sample is required here (input = [1, 28, 28])");
  if (node == nullptr) return sample;
  const toml::array* array = node->as_array();
  need(array != nullptr, location.at(*node), "input: a {} was found; a list of sides is required",
       toml_type(*node));
  Shape shape;
  for (const toml::node& side : *array) {
    need(side.is_integer() && side.as_integer()->get() > 0, location.at(*node),
         "input: sides are positive whole numbers");
    shape.push_back(side.as_integer()->get());
  }
  need(!shape.empty() && shape.size() <= 3, location.at(*node),
       "input: {} sides; [features], [steps, features] or [channels, height, width] are required",
       shape.size());
  return shape;
}

/// The type of the first layer, also of the first one in a residual block; empty if there is none.
std::string first_type(const toml::node& layers) {
  const toml::array* array = layers.as_array();
  const toml::table* first =
      array == nullptr || array->empty() ? nullptr : array->get(0)->as_table();
  const toml::node* type = first == nullptr ? nullptr : first->get("type");
  if (type == nullptr || !type->is_string()) return {};
  const toml::node* body = first->get("body");
  const std::string name = type->as_string()->get();
  return name == "residual" && body != nullptr ? first_type(*body) : name;
}

/// [28x28] is an image of one channel for layers that take images. An image of one channel is a
/// sequence of its rows for layers that take sequences: arrays [samples x steps x features] are
/// read as such images.
void fit_sides(Shape& input, const std::string& type) {
  const bool takes_images = type == "conv2d" || type == "max_pool" || type == "average_pool";
  if (takes_images && input.size() == 2) input.insert(input.begin(), 1);
  if ((takes_steps(type) || type == "layer_norm") && input.size() == 3 && input[0] == 1)
    input.erase(input.begin());
}

}  // namespace

ModelSpec parse_model(const std::string& text, const std::string& path, const ModelEnds& ends) {
  const toml::table file = toml_table(text, {path, ErrorKind::argument, "--model"});
  const SourceLocation location{path, 1};
  for (const auto& [key, node] : file)
    need(key == "name" || key == "input" || key == "layers", location.at(node),
         "there is no key \"{}\"{}; a model has name, input and layers", printable(key.str()),
         did_you_mean(key.str(), {"name", "input", "layers"}));
  ModelSpec spec{
      std::filesystem::path(path).stem().string(), input_of(file, location, ends.sample), {}};
  if (const toml::node* name = file.get("name")) {
    need(name->is_string(), location.at(*name), "name: a {} was found; a string is required",
         toml_type(*name));
    spec.name = name->as_string()->get();
  }
  const toml::node* layers = file.get("layers");
  need(layers != nullptr, location, "\"layers\" is missing; a list of layers is required");
  fit_sides(spec.input, first_type(*layers));
  spec.layers = LayerReader(location, ends).list(*layers, spec.input, "");
  need(!spec.layers.empty(), location.at(*layers), "layers: the list is empty");
  try {
    need(parameter_count(spec) > 0, location.at(*layers),
         "layers: none has parameters to be trained");
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(printable(path))) throw;
    need(false, location.at(*layers), "{}", error.what());
  }
  return spec;
}

ModelSpec read_model(const std::string& path, const ModelEnds& ends) {
  return parse_model(text_of_file(path, "--model", "give a TOML file of layers"), path, ends);
}

std::string describe(const ModelSpec& spec) {
  const std::vector<Shape> all = shapes(spec);
  std::vector<std::size_t> counts(spec.layers.size());
  for (const ParameterSpec& parameter : parameters(spec))
    counts[parameter.layer] += parameter.count;
  std::string text = fmt::format("model {}, loss {}\n", spec.name, name(spec.loss.kind));
  const auto row = [&](const std::string& number, const std::string& layer,
                       const std::string& output, const std::string& count) {
    text += fmt::format("  {:>3}  {:<44}  {:<12}  {:>12}", number, layer, output, count);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  row("", "layer", "output", "parameters");
  row("", "input", describe(all[0]), "");
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    row(fmt::format("{}", i + 1), describe(spec.layers[i]), describe(all[i + 1]),
        fmt::format("{}", counts[i]));
  row("", "all", "", fmt::format("{}", parameter_count(spec)));
  return text;
}

}  // namespace fast::nn
