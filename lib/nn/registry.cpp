#include <array>

#include "nn/layers/row.hpp"

namespace fast::nn {
namespace {

constexpr std::array all_rows{
#define FAST_ROW(name) &rows::name,
#include "nn/rows.inc"
#undef FAST_ROW
};
constexpr std::size_t kinds = std::variant_size_v<LayerSpec::variant>;
static_assert(all_rows.size() == kinds, "each layer of LayerSpec has one file in lib/nn/layers");

std::array<const Row*, kinds> by_kind() {
  std::array<const Row*, kinds> sorted{};
  for (const Row* row : all_rows) sorted.at(row->kind) = row;
  return sorted;
}

}  // namespace

const Row& row_of(const LayerSpec& spec) {
  static const std::array<const Row*, kinds> sorted = by_kind();
  return *sorted.at(spec.index());
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
