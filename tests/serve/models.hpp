// Small trained-looking models for the tests of the server.
#pragma once

#include <fast/core/random.hpp>
#include <fast/nn/network.hpp>
#include <fast/train/model_metadata.hpp>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <memory>
#include <vector>

#include "fast_serve/served_model.hpp"

namespace fast::testing {

inline std::vector<TensorView> all_tensors(nn::Network<float>& network) {
  std::vector<TensorView> views = network.parameter_views();
  for (TensorView& buffer : network.buffer_views()) views.push_back(buffer);
  return views;
}

inline std::shared_ptr<const serve::ModelVersion> version_of(const nn::ModelSpec& spec,
                                                             std::uint64_t seed,
                                                             serve::Normalizing own = {}) {
  nn::Network<float> network(spec, seed);
  return std::make_shared<serve::ModelVersion>(spec, spec.input, all_tensors(network), own, "test");
}

inline void save_model(const std::filesystem::path& file, const nn::ModelSpec& spec,
                       std::uint64_t seed, const train::Metadata& metadata = {}) {
  nn::Network<float> network(spec, seed);
  train::save_safetensors(file, all_tensors(network), metadata);
}

/// Uniform in [0, 1).
inline std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng.uniform());
  return values;
}

/// The oracle: the network itself, one sample at a time or all at once.
inline std::vector<float> logits_of(const nn::ModelSpec& spec, std::uint64_t seed,
                                    std::span<const float> values, std::size_t count) {
  nn::Network<float> network(spec, seed);
  const std::vector<std::int32_t> labels(count);
  const auto logits = network.forward({values, labels, spec.input});
  return {logits.begin(), logits.end()};
}

}  // namespace fast::testing
