// Random numbers of a model: initial weights, and those by which layers choose in training.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/random.hpp>
#include <fast/nn/model_spec.hpp>
#include <span>
#include <vector>

namespace fast::nn {

/// Initial values of the parameters [first, last) of a model's list, which lie without gaps from
/// `to` on. Each tensor has a seed of its own: parts of a model begin as the whole one does.
template <class T>
void draw_initial(const std::vector<ParameterSpec>& list, std::size_t first, std::size_t last,
                  std::uint64_t seed, T* to) {
  for (std::size_t p = first; p < last; ++p) {
    const std::span<T> values(to + (list[p].offset - list[first].offset), list[p].count);
    std::fill(values.begin(), values.end(), static_cast<T>(list[p].initial));
    if (list[p].fan_in == 0) continue;
    Rng rng(mix_seed(seed, p));
    const double gain = list[p].layer == list.back().layer ? 1.0 : 2.0;  // no ReLU after the last
    const double deviation = std::sqrt(gain / static_cast<double>(list[p].fan_in));
    for (T& weight : values) weight = static_cast<T>(deviation * rng.normal());
  }
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

/// One number a sample, of some parameters and of the sample's inputs: another one in every step,
/// and the same however a batch is divided.
template <class T, class Input>
void draw_noise(std::span<const T> parameters, std::span<const Input> inputs, std::size_t samples,
                std::vector<std::uint64_t>& noise) {
  constexpr std::size_t looked_at = 256;
  std::uint64_t of_model = 0;
  for (std::size_t i = 0; i < parameters.size(); i += parameters.size() / looked_at + 1)
    of_model = mix_seed(of_model, bits_of(parameters[i]));
  const std::size_t size = inputs.size() / samples;
  noise.assign(samples, of_model);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::uint64_t& of_sample = noise[i / size];
    of_sample = (of_sample ^ bits_of(inputs[i])) * 0x100000001b3;  // FNV-1a
  }
}

/// Whether some layer chooses at random in training.
inline bool has_dropout(std::span<const LayerSpec> layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    const auto* residual = std::get_if<Residual>(&layer);
    return std::holds_alternative<Dropout>(layer) ||
           (residual != nullptr &&
            (has_dropout(residual->body) || has_dropout(residual->shortcut)));
  });
}

}  // namespace fast::nn
