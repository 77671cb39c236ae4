// Seeded batches for the tests of fast::nn, and their natural order of values.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/random.hpp>
#include <fast/nn/model_spec.hpp>
#include <functional>
#include <numeric>
#include <vector>

namespace fast::nn {

inline std::int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Tokens below this number, for a model that begins with an embedding; otherwise 0.
inline std::int64_t tokens_of(const std::vector<LayerSpec>& layers) {
  const auto* embedding = layers.empty() ? nullptr : std::get_if<Embedding>(&layers.front());
  return embedding == nullptr ? 0 : embedding->tokens;
}

struct Samples {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  Shape shape;

  Samples(std::int64_t count, Shape shape_, std::int64_t classes, std::uint64_t seed = 5)
      : shape(std::move(shape_)) {
    Rng rng(seed);
    for (std::int64_t i = 0; i < count * elements(shape); ++i)
      inputs.push_back(static_cast<float>(rng.normal()));
    for (std::int64_t i = 0; i < count; ++i)
      labels.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(classes))));
  }
  /// Inputs that the model takes.
  Samples(std::int64_t count, const ModelSpec& spec, std::int64_t classes, std::uint64_t seed = 5)
      : Samples(count, spec.input, classes, seed) {
    const std::int64_t tokens = tokens_of(spec.layers);
    Rng rng(seed);
    for (std::size_t i = 0; tokens > 0 && i < inputs.size(); ++i)
      inputs[i] = static_cast<float>(rng.below(static_cast<std::uint64_t>(tokens)));
  }
  Batch batch() const { return {inputs, labels, shape}; }
  Batch batch(std::size_t first, std::size_t count) const {
    const auto size = static_cast<std::size_t>(elements(shape));
    return {std::span(inputs).subspan(first * size, count * size),
            std::span(labels).subspan(first, count), shape};
  }
};

}  // namespace fast::nn
