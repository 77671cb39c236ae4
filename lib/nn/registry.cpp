#include <algorithm>
#include <array>
#include <fast/nn/model_file.hpp>

#include "nn/layers/row.hpp"

namespace fast::nn {
namespace {

constexpr std::array all_rows{
#define FAST_ROW(name) NamedRow{#name, &rows::name},
#include "nn/rows.inc"
#undef FAST_ROW
};
constexpr std::size_t kinds = std::variant_size_v<LayerSpec::variant>;
static_assert(all_rows.size() == kinds, "each layer of LayerSpec has one file in lib/nn/layers");

std::array<const Row*, kinds> by_kind() {
  std::array<const Row*, kinds> sorted{};
  for (const NamedRow& named : all_rows) sorted.at(named.row->kind) = named.row;
  return sorted;
}

}  // namespace

const Row& row_of(const LayerSpec& spec) {
  static const std::array<const Row*, kinds> sorted = by_kind();
  return *sorted.at(spec.index());
}

const NamedRow* row_named(std::string_view name) {
  const auto* found = std::find_if(all_rows.begin(), all_rows.end(),
                                   [&](const NamedRow& named) { return named.name == name; });
  return found == all_rows.end() ? nullptr : found;
}

std::vector<std::string_view> layer_names() {
  std::vector<std::string_view> names;
  for (const NamedRow& named : all_rows) names.push_back(named.name);
  return names;
}

template <>
std::unique_ptr<Layer<float>> make_layer(const LayerSpec& spec, const Shape& input, bool relu) {
  return row_of(spec).make_float(spec, input, relu);
}
template <>
std::unique_ptr<Layer<double>> make_layer(const LayerSpec& spec, const Shape& input, bool relu) {
  return row_of(spec).make_double(spec, input, relu);
}

}  // namespace fast::nn
