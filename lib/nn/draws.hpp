// Random numbers of a model: initial weights, and those by which layers choose in training.
#pragma once

#include <algorithm>
#include <cmath>
#include <fast/core/random.hpp>
#include <fast/nn/model_spec.hpp>
#include <span>
#include <vector>

#include "nn/noise.hpp"

namespace fast::nn {

/// Initial values of the parameters [first, last) of a model's list, which lie without gaps from
/// `to` on. Each tensor has a seed of its own: parts of a model begin as the whole one does.
template <class T>
void draw_initial(const std::vector<ParameterSpec>& list, std::size_t first, std::size_t last,
                  std::uint64_t seed, T* to) {
  for (std::size_t p = first; p < last; ++p) {
    const std::span<T> values(to + (list[p].offset - list[first].offset), list[p].count);
    std::ranges::fill(values, static_cast<T>(list[p].initial));
    if (list[p].fan_in == 0) continue;
    Rng rng(mix_seed(seed, p));
    const double gain = list[p].layer == list.back().layer ? 1.0 : 2.0;  // no ReLU after the last
    const double deviation = std::sqrt(gain / static_cast<double>(list[p].fan_in));
    for (T& weight : values) weight = static_cast<T>(deviation * rng.normal());
  }
}

/// One number a sample, of some parameters and of the sample's inputs: another one in every step,
/// and the same however a batch is divided.
template <class T, class Input>
void draw_noise(std::span<const T> parameters, std::span<const Input> inputs, std::size_t samples,
                std::vector<std::uint64_t>& noise) {
  const std::uint64_t of_model = noise_of_model(parameters.data(), parameters.size());
  const std::size_t size = inputs.size() / samples;
  noise.resize(samples);
  for (std::size_t s = 0; s < samples; ++s)
    noise[s] = noise_of_sample(of_model, inputs.data() + s * size, size);
}

/// Whether some layer chooses at random in training.
inline bool has_dropout(std::span<const LayerSpec> layers) {
  return std::ranges::any_of(layers, [](const LayerSpec& layer) {
    const auto* residual = std::get_if<Residual>(&layer);
    return std::holds_alternative<Dropout>(layer) ||
           (residual != nullptr &&
            (has_dropout(residual->body) || has_dropout(residual->shortcut)));
  });
}

}  // namespace fast::nn
