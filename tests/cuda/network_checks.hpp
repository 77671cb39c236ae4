// Models that between them use every layer in every way, and what a network on a device must have
// in common with nn's.
#pragma once

#include <algorithm>
#include <cmath>
#include <fast/core/element.hpp>
#include <fast/nn/network.hpp>
#include <vector>

#include "nn/layer_examples.hpp"
#include "nn/samples.hpp"
#include "support/catch.hpp"

namespace fast::testing {

inline std::vector<nn::ModelSpec> device_models() {
  using namespace nn;
  const Residual plain{
      {Conv2d{8, 3, 1, 1, false}, BatchNorm{}, Relu{}, Conv2d{8, 3, 1, 1, false}, BatchNorm{}}, {}};
  const Residual projected{{Conv2d{6, 3, 2, 1, false}, BatchNorm{}},
                           {Conv2d{6, 1, 2, 0, false}, BatchNorm{}}};
  const Residual bottleneck{
      {Conv2d{4, 1, 1, 0, false}, BatchNorm{}, Relu{}, Conv2d{4, 3, 2, 1, false}, BatchNorm{},
       Relu{}, Conv2d{16, 1, 1, 0, false}, BatchNorm{}},
      {Conv2d{16, 1, 2, 0, false}, BatchNorm{}}};
  return {
      {"dense", {7}, {Dense{5}}},
      {"classes for many threads", {6}, {Dense{700}}},
      mlp({784, 20, 10}),
      lenet5(),
      {"strided",
       {3, 9, 11},
       {Conv2d{5, 3, 2, 0}, Relu{}, Conv2d{4, 2, 1, 1, false}, Relu{}, Flatten{}, Relu{},
        Dense{4}}},
      {"pools that overlap",
       {2, 8, 9},
       {MaxPool{3, 2}, Conv2d{4, 1}, MaxPool{2, 1}, Relu{}, GlobalAveragePool{}, Dense{3}}},
      {"norms",
       {3, 5, 6},
       {BatchNorm{}, Conv2d{6, 3}, BatchNorm{0.3, 1e-3}, Relu{}, MaxPool{}, Flatten{}, Dense{3}}},
      {"residuals",
       {3, 8, 8},
       {Conv2d{8, 3, 1, 1}, plain, Relu{}, plain, projected, Relu{}, Flatten{}, Dense{5}, Relu{},
        Dense{4}}},
      {"residuals in residuals",
       {3, 6, 5},
       {Conv2d{8, 3, 1, 1}, BatchNorm{},
        Residual{{Residual{{Conv2d{8, 3, 1, 1}, BatchNorm{}}, {}}, Relu{}}, {BatchNorm{}}},
        Residual{{BatchNorm{}}, {}}, Relu{},
        Residual{{Residual{{BatchNorm{}, Relu{}}, {}}, Relu{}}, {}},
        Residual{{BatchNorm{}, Relu{}}, {BatchNorm{}}}, Relu{}, Residual{{BatchNorm{}}, {}},
        Flatten{}, Dense{4}}},
      {"bottlenecks",
       {3, 13, 12},
       {Conv2d{8, 7, 2, 3, false}, BatchNorm{}, Relu{}, MaxPool{3, 2, 1}, bottleneck, Relu{},
        GlobalAveragePool{}, Dense{5}}},
      {"groups",
       {3, 6, 5},
       {Conv2d{8, 3, 1, 1}, GroupNorm{4}, Relu{}, Residual{{GroupNorm{1}, Conv2d{8, 3, 1, 1}}, {}},
        GroupNorm{8, 1e-3}, MaxPool{}, Flatten{}, Dense{3}}},
      lstm(12),
      {"two LSTMs",
       {6, 5},
       {Lstm{7, true}, Relu{}, Lstm{4, true}, Lstm{9}, Dense{6}, Relu{}, Dense{4}}},
      {"convolutions of sequences",
       {9, 5},
       {Conv1d{8, 3, 1, 1}, Relu{}, Conv1d{6, 4, 2, 2, false}, Relu{}, Conv1d{4, 1}, Lstm{5},
        Dense{3}}},
      {"one feature", {12, 1}, {Conv1d{4, 5, 3, 2}, LayerNorm{}, Flatten{}, Dense{3}}},
      {"dropout in blocks and behind ReLUs",
       {3, 6, 5},
       {Conv2d{8, 3, 1, 1}, BatchNorm{}, Relu{}, Dropout{0.3},
        Residual{{Conv2d{8, 3, 1, 1}, Dropout{}}, {Dropout{0.2}}}, Flatten{}, Dense{8}, Relu{},
        Dropout{}, Dense{3}}},
      {"dropout of steps", {4, 6}, {Dropout{0.2}, Lstm{5, true}, Dropout{}, Gru{3}, Dense{3}}},
      {"a block that evaluation passes through",
       {3, 5, 6},
       {BatchNorm{}, Residual{{Dropout{0.3}}, {}}, Flatten{}, Dense{3}}},
      {"two GRUs", {6, 5}, {Gru{7, true}, Gru{9}, Dense{4}}},
      {"a GRU between LSTMs",
       {5, 4},
       {Lstm{6, true}, Gru{5, true}, Relu{}, Lstm{7, true}, Gru{3}, Dense{3}}},
      {"all steps of a GRU", {3, 4}, {Gru{5, true}, Flatten{}, Dense{3}}},
      {"all steps of an LSTM", {3, 4}, {Lstm{5, true}, Flatten{}, Dense{3}}},
      {"a transformer",
       {7, 5},
       {Dense{12}, Position{}, Residual{{LayerNorm{}, Attention{3, true}}, {}},
        Residual{{LayerNorm{}, Dense{24}, Gelu{}, Dense{12}, Dropout{0.2}}, {}}, LayerNorm{},
        Flatten{}, Dense{4}}},
      {"an image of a pixel", {4, 1, 1}, {Conv2d{3, 1}, BatchNorm{}, Flatten{}, Dense{2}}}};
}

/// One kind of layer each, and no ReLU or pool behind a sum: where rounding turns one of these, a
/// gradient goes another way altogether.
inline std::vector<nn::ModelSpec> layer_models() {
  using namespace nn;
  const Conv2d conv{5, 3, 2, 1};
  std::vector<ModelSpec> models{
      {"dense", {40}, {Dense{20}, Dense{4}}},
      {"convolutions", {3, 9, 11}, {conv, Conv2d{4, 2, 1, 1, false}, Flatten{}, Dense{4}}},
      {"pool of packs", {8, 8, 9}, {MaxPool{3, 2, 1}, Flatten{}, Dense{3}}},
      {"batch norm", {3, 5, 6}, {BatchNorm{}, Flatten{}, Dense{3}}},
      {"batch norm of packs", {16, 5, 6}, {BatchNorm{}, Flatten{}, Dense{3}}},
      {"group norm", {6, 5, 4}, {GroupNorm{3}, Flatten{}, Dense{3}}},
      lstm(12),
      {"two LSTMs", {6, 5}, {Lstm{7, true}, Lstm{9}, Dense{4}}}};
  for (const LayerExample& example : layer_examples()) models.push_back(model_of(example));
  return models;
}

/// Layers of sequences and dropout, with sizes of the seed.
inline std::vector<nn::ModelSpec> random_models(std::uint64_t seed) {
  using namespace nn;
  Rng rng(seed);
  const auto size = [&](std::uint64_t most) {
    return static_cast<std::int64_t>(1 + rng.below(most));
  };
  const Shape sequence{size(12), size(9)}, image{size(5), size(6), size(7)};
  const std::int64_t kernel = std::min(size(5), sequence[0]);
  const Conv1d conv{size(9), kernel, size(3), size(static_cast<std::uint64_t>(kernel)) - 1,
                    size(2) == 1};
  const Gru gru{size(9), size(2) == 1};
  const Attention attention{size(4), size(2) == 1};
  const Shape split{sequence[0], attention.heads * size(4)};
  return {{"conv1d", sequence, {conv, Relu{}, Flatten{}, Dense{3}}},
          {"gru", sequence, {gru, Flatten{}, Dense{3}}},
          {"attention", split, {attention, Flatten{}, Dense{3}}},
          {"softmax", sequence, {Softmax{}, Position{}, Flatten{}, Dense{3}}},
          {"dropout", image, {Dropout{rng.uniform(0, 0.9)}, Flatten{}, Dense{3}}},
          {"dropout of steps", sequence, {Dropout{rng.uniform(0, 0.9)}, Flatten{}, Dense{3}}}};
}

/// ‖a - b‖ / ‖b‖ of the elements from `first` on.
inline double apart(const std::vector<float>& a, std::span<const float> b, std::size_t first,
                    std::size_t count) {
  double square = 0, size = 1e-20;
  for (std::size_t e = first; e < first + count; ++e) {
    square += std::pow(double{a[e]} - double{b[e]}, 2);
    size += double{b[e]} * double{b[e]};
  }
  return std::sqrt(square / size);
}

inline double norm(std::span<const float> values) {
  double square = 0;
  for (const float value : values) square += double{value} * double{value};
  return std::sqrt(square);
}

/// Of the gradients of one layer.
inline double norm_of_layer(const std::vector<nn::ParameterSpec>& parameters, std::size_t layer,
                            std::span<const float> gradients) {
  double square = 0;
  for (const nn::ParameterSpec& p : parameters)
    if (p.layer == layer) square += std::pow(norm(gradients.subspan(p.offset, p.count)), 2);
  return std::sqrt(square);
}

/// Loss, each gradient, running statistics and evaluation of one batch, to `tolerance` relative.
/// Net is cuda::Network's shape: constructed, on which parameters and buffers can be set.
template <class Net>
void check_against_nn(Net& net, const nn::ModelSpec& spec, std::int64_t samples, double tolerance) {
  nn::Network<float> reference(spec, 31);
  net.set_parameters(reference.parameters());
  net.set_buffers(reference.buffers());
  nn::Samples batch(samples, spec, reference.classes(), 32);
  for (float& value : batch.inputs) value = to_float(to_bfloat16(value));  // so in any precision
  INFO(spec.name << ", " << samples << " samples");
  CHECK(net.loss_and_gradients(batch.batch()) ==
        Approx(reference.loss_and_gradients(batch.batch())).epsilon(tolerance));
  const std::vector<float> gradients = net.gradients(), buffers = net.buffers();
  REQUIRE(gradients.size() == reference.gradients().size());
  // A bias before batch normalization has no gradient but rounding.
  double largest = 0;
  for (const float grad : reference.gradients())
    largest = std::max(largest, std::fabs(double{grad}));
  const std::vector<nn::ParameterSpec> parameters = nn::parameters(spec);
  for (const nn::ParameterSpec& p : parameters) {
    const auto part = reference.gradients().subspan(p.offset, p.count);
    double size = 0;
    for (const float grad : part) size = std::max(size, std::fabs(double{grad}));
    INFO(p.name);
    if (size < 1e-5 * largest) {
      for (std::size_t e = p.offset; e < p.offset + p.count; ++e)
        CHECK(std::fabs(double{gradients[e]}) < tolerance * largest);
    } else {
      // A bias's gradient is a sum of terms that cancel one another. The rounding of the terms does
      // not, so that in bf16 it is measured by the gradients of the whole layer.
      const double share =
          tolerance < 1e-2 ? 1
                           : norm(part) / norm_of_layer(parameters, p.layer, reference.gradients());
      CHECK(apart(gradients, reference.gradients(), p.offset, p.count) * share < tolerance);
    }
  }
  REQUIRE(buffers.size() == reference.buffers().size());
  CHECK(apart(buffers, reference.buffers(), 0, buffers.size()) < tolerance);
  const nn::LossResult found = net.evaluate(batch.batch()),
                       expected = reference.evaluate(batch.batch());
  CHECK(found.sum == Approx(expected.sum).epsilon(tolerance));
  // Coarse rounding may turn a sample whose logits are nearly equal.
  const double turned =
      std::fabs(static_cast<double>(found.correct) - static_cast<double>(expected.correct));
  CHECK(turned <= (tolerance < 1e-2 ? 0.0 : 0.1 * static_cast<double>(samples)));
}

/// In bf16: the loss to 2e-2, all gradients together to 0.2, as ReLUs and pools turn at ties.
template <class Net>
void check_near_nn(Net& net, const nn::ModelSpec& spec, std::int64_t samples) {
  nn::Network<float> reference(spec, 31);
  net.set_parameters(reference.parameters());
  net.set_buffers(reference.buffers());
  const nn::Samples batch(samples, spec.input, reference.classes(), 32);
  INFO(spec.name << ", " << samples << " samples");
  CHECK(net.loss_and_gradients(batch.batch()) ==
        Approx(reference.loss_and_gradients(batch.batch())).epsilon(2e-2));
  const std::vector<float> gradients = net.gradients(), buffers = net.buffers();
  CHECK(apart(gradients, reference.gradients(), 0, gradients.size()) < 0.2);
  CHECK(apart(buffers, reference.buffers(), 0, buffers.size()) < 2e-2);
}

}  // namespace fast::testing
