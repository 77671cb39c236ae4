#include <array>
#include <fast/nn/model_file.hpp>

#include "core/registry.hpp"
#include "nn/layers/row.hpp"

namespace fast::nn {
namespace {

constexpr Named<const Row*> entries[] = {
    {"average_pool", &rows::average_pool},
    {"batch_norm", &rows::batch_norm},
    {"conv1d", &rows::conv1d},
    {"conv2d", &rows::conv2d},
    {"dense", &rows::dense},
    {"dropout", &rows::dropout},
    {"embedding", &rows::embedding},
    {"flatten", &rows::flatten},
    {"gelu", &rows::gelu},
    {"global_average_pool", &rows::global_average_pool},
    {"group_norm", &rows::group_norm},
    {"gru", &rows::gru},
    {"layer_norm", &rows::layer_norm},
    {"lstm", &rows::lstm},
    {"max_pool", &rows::max_pool},
    {"relu", &rows::relu},
    {"residual", &rows::residual},
    {"silu", &rows::silu},
};
constexpr Registry registry{entries};
constexpr std::size_t kinds = std::variant_size_v<LayerSpec::variant>;
static_assert(std::size(entries) == kinds, "each layer of LayerSpec has one entry");

std::array<const Row*, kinds> by_kind() {
  std::array<const Row*, kinds> sorted{};
  for (const auto& [name, row] : entries) sorted.at(row->kind) = row;
  return sorted;
}

}  // namespace

const Row& row_of(const LayerSpec& spec) {
  static const std::array<const Row*, kinds> sorted = by_kind();
  return *sorted.at(spec.index());
}

const Row* row_named(std::string_view name) {
  const Named<const Row*>* found = registry.find(name);
  return found == nullptr ? nullptr : found->value;
}

std::vector<std::string_view> layer_names() { return registry.names(); }

template <>
std::unique_ptr<Layer<float>> make_layer(const LayerSpec& spec, const Shape& input, bool relu) {
  return row_of(spec).make_float(spec, input, relu);
}
template <>
std::unique_ptr<Layer<double>> make_layer(const LayerSpec& spec, const Shape& input, bool relu) {
  return row_of(spec).make_double(spec, input, relu);
}

}  // namespace fast::nn
