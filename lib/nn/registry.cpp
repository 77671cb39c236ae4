#include <array>
#include <fast/nn/model_spec.hpp>

#include "core/registry.hpp"
#include "nn/layers/layer_entry.hpp"

namespace fast::nn {
namespace {

constexpr Named<const LayerEntry*> entries[] = {
    {"attention", &entries::attention},
    {"average_pool", &entries::average_pool},
    {"batch_norm", &entries::batch_norm},
    {"conv1d", &entries::conv1d},
    {"conv2d", &entries::conv2d},
    {"dense", &entries::dense},
    {"dropout", &entries::dropout},
    {"embedding", &entries::embedding},
    {"flatten", &entries::flatten},
    {"gelu", &entries::gelu},
    {"global_average_pool", &entries::global_average_pool},
    {"group_norm", &entries::group_norm},
    {"gru", &entries::gru},
    {"layer_norm", &entries::layer_norm},
    {"leaky_relu", &entries::leaky_relu},
    {"lstm", &entries::lstm},
    {"max_pool", &entries::max_pool},
    {"position", &entries::position},
    {"relu", &entries::relu},
    {"residual", &entries::residual},
    {"sigmoid", &entries::sigmoid},
    {"silu", &entries::silu},
    {"softmax", &entries::softmax},
    {"tanh", &entries::tanh},
};
constexpr Registry registry{entries};
constexpr std::size_t kinds = std::variant_size_v<LayerSpec::variant>;
static_assert(std::size(entries) == kinds, "each layer of LayerSpec has one entry");

std::array<const LayerEntry*, kinds> by_kind() {
  std::array<const LayerEntry*, kinds> sorted{};
  for (const auto& [name, row] : entries) sorted.at(row->kind) = row;
  return sorted;
}

}  // namespace

const LayerEntry& entry_of(const LayerSpec& spec) {
  static const std::array<const LayerEntry*, kinds> sorted = by_kind();
  return *sorted.at(spec.index());
}

const LayerEntry* entry_named(std::string_view name) {
  const Named<const LayerEntry*>* found = registry.find(name);
  return found == nullptr ? nullptr : found->value;
}

std::vector<std::string_view> layer_names() { return registry.names(); }

template <>
std::unique_ptr<Layer<float>> make_layer(const LayerSpec& spec, const Shape& input, bool relu) {
  return entry_of(spec).make_float(spec, input, relu);
}
template <>
std::unique_ptr<Layer<double>> make_layer(const LayerSpec& spec, const Shape& input, bool relu) {
  return entry_of(spec).make_double(spec, input, relu);
}

}  // namespace fast::nn
