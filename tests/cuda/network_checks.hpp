// Models that between them use every layer in every way, and what a network on a device must have
// in common with nn's.
#pragma once

#include <cmath>
#include <fast/nn/network.hpp>
#include <vector>

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
      {"bottlenecks",
       {3, 13, 12},
       {Conv2d{8, 7, 2, 3, false}, BatchNorm{}, Relu{}, MaxPool{3, 2, 1}, bottleneck, Relu{},
        GlobalAveragePool{}, Dense{5}}},
      {"an image of a pixel", {4, 1, 1}, {Conv2d{3, 1}, BatchNorm{}, Flatten{}, Dense{2}}}};
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

/// Loss, each gradient, running statistics and evaluation of one batch, to `tolerance` relative.
/// Net is cuda::Network's shape: constructed, with nn's initial weights and buffers' values.
template <class Net>
void check_against_nn(Net& net, const nn::ModelSpec& spec, std::int64_t samples, double tolerance) {
  nn::Network<float> reference(spec, 31);
  net.set_parameters(reference.parameters());
  const nn::Samples batch(samples, spec.input, reference.classes(), 32);
  INFO(spec.name << ", " << samples << " samples");
  CHECK(net.loss_and_gradients(batch.batch()) ==
        Approx(reference.loss_and_gradients(batch.batch())).epsilon(tolerance));
  const std::vector<float> gradients = net.gradients(), buffers = net.buffers();
  REQUIRE(gradients.size() == reference.gradients().size());
  // A bias before batch normalization has no gradient but rounding.
  double largest = 0;
  for (const float slope : reference.gradients())
    largest = std::max(largest, std::fabs(double{slope}));
  for (const nn::ParameterSpec& p : nn::parameters(spec)) {
    const auto part = reference.gradients().subspan(p.offset, p.count);
    double size = 0;
    for (const float slope : part) size = std::max(size, std::fabs(double{slope}));
    INFO(p.name);
    if (size < 1e-5 * largest) {
      for (std::size_t e = p.offset; e < p.offset + p.count; ++e)
        CHECK(std::fabs(double{gradients[e]}) < tolerance * largest);
    } else {
      CHECK(apart(gradients, reference.gradients(), p.offset, p.count) < tolerance);
    }
  }
  REQUIRE(buffers.size() == reference.buffers().size());
  CHECK(apart(buffers, reference.buffers(), 0, buffers.size()) < tolerance);
  const nn::LossResult found = net.evaluate(batch.batch()),
                       expected = reference.evaluate(batch.batch());
  CHECK(found.sum == Approx(expected.sum).epsilon(tolerance));
  CHECK(found.correct == expected.correct);
}

}  // namespace fast::testing
